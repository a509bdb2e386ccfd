//! The operands that all operations of a step share, and the work that they give to the team.

use std::sync::{
    Mutex, PoisonError, RwLock,
    atomic::{AtomicU64, Ordering},
};

use setun_ops::{
    BatchInputs,
    op::BufferId,
    plan::{Plan, RowSet},
};

use crate::{
    member_sums::MemberSums,
    scratch::Scratch,
    split::{Claims, Parts},
    step::Weights,
    team::Crew,
    ternary_dot::TernaryDot,
};

/// What every operation needs; each has its method in the file of its name.
pub(crate) struct Walk<'a, D> {
    pub(crate) isa: D,
    pub(crate) plan: &'a Plan,
    pub(crate) weights: &'a Weights,
    pub(crate) inputs: &'a BatchInputs,
    pub(crate) crew: &'a Crew<'a>,
    pub(crate) scratch: &'a [Mutex<Scratch>],
    pub(crate) sums: &'a [RwLock<MemberSums>],
    /// Of the operation under way; none where the step is not timed.
    pub(crate) counts: Option<Counts>,
}

/// What members of the team count together.
#[derive(Debug, Default)]
pub(crate) struct Counts {
    pub(crate) unread: AtomicU64,  // bytes of weights
    pub(crate) nonzero: AtomicU64, // codes or gates
}

impl<D: TernaryDot> Walk<'_, D> {
    /// Records that weights were not read, as they could not matter.
    pub(crate) fn spare(&self, bytes: usize) {
        if let Some(counts) = &self.counts {
            counts.unread.fetch_add(bytes as u64, Ordering::Relaxed);
        }
    }

    /// Notes codes or gates that are not zero; they are counted only where the step is timed.
    pub(crate) fn record_nonzero(&self, count: impl FnOnce() -> usize) {
        if let Some(counts) = &self.counts {
            counts.nonzero.fetch_add(count() as u64, Ordering::Relaxed);
        }
    }

    /// Rows of this step that a buffer holds.
    pub(crate) fn rows(&self, buffer: BufferId) -> usize {
        match self.plan.buffer(buffer).rows {
            RowSet::Batch => self.inputs.rows(),
            RowSet::Wanted => self.inputs.wanted.len(),
        }
    }

    /// Has the team do `work` on each part, with the part's index.
    pub(crate) fn each<P: Parts>(
        &self,
        parts: P,
        work: impl Fn(&mut Scratch, usize, P::Part) + Sync,
    ) {
        let alone = parts.count() <= 1;
        let claims = Claims::new(parts);
        let job = |member: usize| {
            // A member's own: never contended.
            let mut scratch = self.scratch[member].lock().unwrap_or_else(PoisonError::into_inner);
            while let Some((index, part)) = claims.next() {
                work(&mut scratch, index, part);
            }
        };
        if alone { job(0) } else { self.crew.run(&job) }
    }
}
