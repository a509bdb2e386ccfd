//! Backends that share their weights with workers, against the definitions.

use std::{
    cell::RefCell,
    future::Future,
    pin::pin,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    task::{Context, Poll, Waker},
};

use proptest::prelude::*;
use setun_cpu::{
    CpuBackend, CpuOptions, Level, Receiving, ShardLink,
    testing::{ShardThreads, expect_level},
};
use setun_ops::{Backend, OpsError, comparison::block_on};
use setun_parity::case;

/// Counts answers, so that a test knows that workers took part; the first is late if it is to be.
struct Counted {
    workers: ShardThreads,
    answers: Arc<AtomicUsize>,
    late: bool,
}

impl ShardLink for Counted {
    fn workers(&self) -> usize {
        self.workers.workers()
    }

    fn send(&mut self, worker: usize, parts: &[&[u8]]) -> Result<(), OpsError> {
        self.workers.send(worker, parts)
    }

    fn receive(&mut self, worker: usize) -> Receiving<'_> {
        self.answers.fetch_add(1, Ordering::Relaxed);
        if std::mem::take(&mut self.late) {
            return Box::pin(std::future::pending());
        }
        self.workers.receive(worker)
    }
}

fn options(level: Option<Level>) -> CpuOptions {
    CpuOptions { level, threads: Some(1) }
}

fn backend(level: Option<Level>, workers: usize) -> (CpuBackend, Arc<AtomicUsize>) {
    sharded(ShardThreads::new(options(level), workers), level, false)
}

fn sharded(
    workers: ShardThreads,
    level: Option<Level>,
    late: bool,
) -> (CpuBackend, Arc<AtomicUsize>) {
    let answers = Arc::new(AtomicUsize::new(0));
    let link = Counted { workers, answers: Arc::clone(&answers), late };
    let backend = CpuBackend::new(options(level)).unwrap();
    (backend.with_workers(Box::new(link)), answers)
}

/// Compares random cases of a subject on all levels with 1 to 7 workers.
fn agrees(subject: &str, cases: u32) {
    let cases = cases.min(ProptestConfig::default().cases);
    for level in Level::ALL {
        expect_level(level, || {
            for workers in [1, 2, 3, 7] {
                let (backend, answers) = backend(Some(level), workers);
                let backend = RefCell::new(backend);
                proptest!(ProptestConfig::with_cases(cases), |(seed: u64)| {
                    let case = case(subject, seed).expect("a subject");
                    let compared = block_on(case.compare(&mut *backend.borrow_mut()));
                    prop_assert!(
                        compared.is_ok(),
                        "{subject}, {level}, {workers} workers: {}",
                        compared.unwrap_err()
                    );
                });
                let answers = answers.load(Ordering::Relaxed);
                assert!(answers > 0, "{subject}, {level}: no worker took part");
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
    model: 20,
}

#[test]
fn a_worker_that_ends_is_a_lost_device() {
    let workers = ShardThreads::new(options(None), 2).ends_after(3);
    let (mut backend, _) = sharded(workers, None, false);
    let case = case("model", 7).expect("a subject");
    for _ in 0..2 {
        let compared = block_on(case.compare(&mut backend)).expect_err("its workers have ended");
        assert!(compared.to_string().contains("a worker's thread ended"), "{compared}");
    }
}

#[test]
fn a_step_that_is_given_up_harms_no_other() {
    let workers = ShardThreads::new(options(None), 2);
    let (mut backend, _) = sharded(workers, None, true);
    let case = case("model", 11).expect("a subject");
    let weights = case.upload(&mut backend).unwrap();
    let mut step = backend.prepare(&case.plan, &weights).unwrap();
    let mut cache = backend.create_cache(case.plan.cache(), case.blocks).unwrap();
    backend.run(&mut step, &mut cache, &case.steps[0]).unwrap();
    {
        let finish = pin!(backend.finish(&mut step, &mut cache, &case.steps[0]));
        let polled = finish.poll(&mut Context::from_waker(Waker::noop()));
        assert!(matches!(polled, Poll::Pending), "the first answer is late");
    }
    // What the workers answer to it comes before all that is requested now.
    block_on(case.compare(&mut backend)).expect("the same values");
}
