//! Backends that share their weights with workers, against the definitions.

use std::{cell::RefCell, sync::mpsc, thread};

use proptest::prelude::*;
use setun_cpu::{
    CpuBackend, CpuOptions, Level, Receiving, ShardLink, ShardWorker, testing::expect_level,
};
use setun_ops::{OpsError, comparison::block_on};
use setun_parity::case;

/// Workers on threads, which share nothing.
struct Threads(Vec<(mpsc::Sender<Vec<u8>>, mpsc::Receiver<Vec<u8>>)>);

impl Threads {
    fn new(level: Level, workers: usize) -> Self {
        let options = CpuOptions { level: Some(level), threads: Some(1) };
        let worker = |_| {
            let (to_worker, messages) = mpsc::channel::<Vec<u8>>();
            let (answers, from_worker) = mpsc::channel();
            thread::spawn(move || {
                let mut worker = ShardWorker::new(options).unwrap();
                for message in messages {
                    if let Some(answer) = worker.handle(&message)
                        && answers.send(answer).is_err()
                    {
                        break;
                    }
                }
            });
            (to_worker, from_worker)
        };
        Self((0..workers).map(worker).collect())
    }
}

impl ShardLink for Threads {
    fn workers(&self) -> usize {
        self.0.len()
    }

    fn send(&mut self, worker: usize, parts: &[&[u8]]) -> Result<(), OpsError> {
        self.0[worker].0.send(parts.concat()).map_err(|_| lost())
    }

    fn receive(&mut self, worker: usize) -> Receiving<'_> {
        Box::pin(async move { self.0[worker].1.recv().map_err(|_| lost()) })
    }
}

fn lost() -> OpsError {
    OpsError::DeviceLost { reason: "a thread ended".to_owned() }
}

/// Compares random cases of a subject on all levels with 1 to 7 workers.
fn agrees(subject: &str, cases: u32) {
    let cases = cases.min(ProptestConfig::default().cases);
    for level in Level::ALL {
        expect_level(level, || {
            for workers in [1, 2, 3, 7] {
                let options = CpuOptions { level: Some(level), threads: Some(1) };
                let new = || {
                    let link = Threads::new(level, workers);
                    CpuBackend::new(options).unwrap().with_workers(Box::new(link))
                };
                let backend = RefCell::new(new());
                proptest!(ProptestConfig::with_cases(cases), |(seed: u64)| {
                    let case = case(subject, seed).expect("a subject");
                    let compared = block_on(case.compare(&mut *backend.borrow_mut()));
                    prop_assert!(
                        compared.is_ok(),
                        "{subject}, {level}, {workers} workers: {}",
                        compared.unwrap_err()
                    );
                });
            }
        });
    }
}

macro_rules! subjects {
    ($($subject:ident: $cases:literal,)+) => {
        $(
            #[test]
            fn $subject() {
                agrees(stringify!($subject), $cases);
            }
        )+
    };
}

subjects! {
    ternary_matmul: 20,
    gate: 20,
    head: 20,
    top_logits: 60,
    argmax: 10,
    model: 20,
}
