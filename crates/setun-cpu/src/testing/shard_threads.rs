//! Workers on threads that share nothing, for tests of sharded backends.

use std::{sync::mpsc, thread};

use setun_ops::OpsError;

use crate::{CpuOptions, Receiving, ShardLink, ShardWorker};

/// Messages to a worker, and its answers.
type Ends = (mpsc::Sender<Vec<u8>>, mpsc::Receiver<Vec<u8>>);

/// A way to [`ShardWorker`]s on threads.
#[derive(Debug)]
pub struct ShardThreads {
    workers: Vec<Ends>,
    answers: usize,
    ends_after: Option<usize>,
}

impl ShardThreads {
    /// # Panics
    ///
    /// If a backend cannot be made with the options.
    #[must_use]
    pub fn new(options: CpuOptions, workers: usize) -> Self {
        let worker = |_| {
            let (to_worker, messages) = mpsc::channel::<Vec<u8>>();
            let (answers, from_worker) = mpsc::channel();
            thread::spawn(move || {
                let mut worker = ShardWorker::new(options).expect("a backend");
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
        Self { workers: (0..workers).map(worker).collect(), answers: 0, ends_after: None }
    }

    /// The workers end after this many answers.
    #[must_use]
    pub fn ends_after(self, answers: usize) -> Self {
        Self { ends_after: Some(answers), ..self }
    }
}

impl ShardLink for ShardThreads {
    fn workers(&self) -> usize {
        self.workers.len()
    }

    fn send(&mut self, worker: usize, parts: &[&[u8]]) -> Result<(), OpsError> {
        self.workers[worker].0.send(parts.concat()).map_err(|_| lost())
    }

    fn receive(&mut self, worker: usize) -> Receiving<'_> {
        self.answers += 1;
        if self.ends_after.is_some_and(|most| self.answers > most) {
            return Box::pin(async { Err(lost()) });
        }
        Box::pin(async move { self.workers[worker].1.recv().map_err(|_| lost()) })
    }
}

fn lost() -> OpsError {
    OpsError::DeviceLost { reason: "a worker's thread ended".to_owned() }
}
