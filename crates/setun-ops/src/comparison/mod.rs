//! Comparison of a backend with the definitions.
//!
//! A [`Case`] is a plan with weights and several steps. [`Case::compare`] runs it on
//! [`ScalarBackend`](crate::ScalarBackend) and on the backend under test, reads every buffer and
//! the cache after every step, and expects the same bits (any NaN for a NaN).
//! [`Case::compare_with`] does so with several backends for one run of the definitions.
//! [`Case::compare_by_op`] compares each operation by itself, within the bounds that its
//! [`Agreement`](crate::op::Agreement) allows a GPU: this is the self-test of a device.

mod by_op;
mod compare;
mod multi_step;

pub use by_op::OpByOp;
pub use compare::{Disagreement, Expected, Output, block_on};

use crate::{Backend, BatchInputs, HAS_RECURRENT, OpsError, Plan, Usage, WeightData};

/// A plan with weights and steps. See the [module](self).
#[derive(Clone, Debug)]
pub struct Case {
    /// The plan; each of its buffers is written once.
    pub plan: Plan,
    /// Its weights.
    pub weights: Vec<WeightData>,
    /// What each of them is for.
    pub usages: Vec<Usage>,
    /// Inputs of the steps, in order.
    pub steps: Vec<BatchInputs>,
    /// Blocks of the cache.
    pub blocks: usize,
}

impl Case {
    /// Recurrent states of the cache: those that the steps name.
    #[must_use]
    pub fn states(&self) -> usize {
        if !HAS_RECURRENT {
            return 0;
        }
        let rows = self.steps.iter().flat_map(|step| &step.states);
        let ids = rows.flat_map(|rows| rows.loaded.iter().chain(&rows.stored));
        ids.map(|(id, _)| id.0 as usize + 1).max().unwrap_or(0)
    }

    /// Moves copies of the weights into a backend.
    ///
    /// # Errors
    ///
    /// If the backend refuses one.
    pub fn upload<B: Backend>(&self, backend: &mut B) -> Result<Vec<B::Weight>, OpsError> {
        let weights = self.weights.iter().cloned().zip(&self.usages);
        weights.map(|(weight, &usage)| backend.upload(weight, usage)).collect()
    }
}
