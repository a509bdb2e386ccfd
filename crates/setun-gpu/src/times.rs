//! What the launches of a step took, as times of the plan's operations.

use std::time::Duration;

use setun_ops::{Op, Plan, backend::StepTimes};

use crate::launch::Launch;

/// Times of the last run of a step. A device skips nothing, so that it counts nothing.
#[derive(Debug)]
pub(crate) struct Times {
    pub(crate) launches: Vec<Duration>,
    ops: Vec<Duration>,
    none: Vec<u64>,
    survivors: Vec<Option<u32>>,
}

impl Times {
    pub(crate) fn new(plan: &Plan) -> Self {
        let ops = plan.ops().len();
        let is_ranked = plan.ops().iter().any(|op| matches!(op, Op::Best { .. }));
        Self {
            launches: vec![],
            ops: vec![Duration::ZERO; ops],
            none: vec![0; ops],
            survivors: vec![None; if is_ranked { plan.wanted() } else { 0 }],
        }
    }

    /// An operation that others do in passing takes no time of its own.
    pub(crate) fn add_up(&mut self, list: &[Launch]) {
        self.ops.fill(Duration::ZERO);
        for (launch, time) in list.iter().zip(&self.launches) {
            self.ops[launch.op] += *time;
        }
    }

    pub(crate) fn of_step(&self, wanted: usize) -> StepTimes<'_> {
        StepTimes {
            ops: &self.ops,
            jobs: self.launches.len(),
            unread: &self.none,
            nonzero: &self.none,
            survivors: &self.survivors[..wanted.min(self.survivors.len())],
        }
    }
}
