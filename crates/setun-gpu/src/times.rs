//! Times of a step's launches, summed by the plan's operations.

use std::time::Duration;

use setun_ops::{Plan, backend::StepTimes};

use crate::launch::Launch;

/// Times of the last run of a step. A device skips nothing, so that it counts nothing.
#[derive(Debug)]
pub(crate) struct Times {
    pub(crate) launches: Vec<Duration>,
    ops: Vec<Duration>,
    unread: Vec<u64>,
}

impl Times {
    pub(crate) fn new(plan: &Plan) -> Self {
        let ops = plan.ops().len();
        Self { launches: vec![], ops: vec![Duration::ZERO; ops], unread: vec![0; ops] }
    }

    /// An operation that others do in passing takes no time of its own.
    pub(crate) fn add_up(&mut self, list: &[Launch]) {
        self.ops.fill(Duration::ZERO);
        for (launch, time) in list.iter().zip(&self.launches) {
            self.ops[launch.op] += *time;
        }
    }

    pub(crate) fn of_step(&self) -> StepTimes<'_> {
        StepTimes {
            ops: &self.ops,
            jobs: self.launches.len(),
            unread: &self.unread,
            nonzero: &[],
            candidates: &[],
        }
    }
}
