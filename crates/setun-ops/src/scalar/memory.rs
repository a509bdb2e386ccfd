//! Buffers and weights of a step, by their numbers.

use super::ScalarStep;
use crate::{
    batch_inputs::BatchInputs,
    dense::DenseMatrix,
    op::{BufferId, WeightId},
    plan::RowSet,
    rope_append::RopeTable,
    ternary::TernaryMatrix,
    weight::WeightData,
};

impl ScalarStep {
    pub(super) fn rows(&self, buffer: BufferId, inputs: &BatchInputs) -> usize {
        match self.plan.buffer(buffer).rows {
            RowSet::Batch => inputs.rows(),
            RowSet::Wanted => inputs.wanted.len(),
        }
    }

    pub(super) fn width(&self, buffer: BufferId) -> usize {
        self.plan.buffer(buffer).width
    }

    pub(super) fn row(&self, buffer: BufferId, row: usize) -> &[f32] {
        let width = self.width(buffer);
        &self.buffers[buffer.0 as usize].floats[row * width..][..width]
    }

    pub(super) fn row_mut(&mut self, buffer: BufferId, row: usize) -> &mut [f32] {
        let width = self.width(buffer);
        &mut self.buffers[buffer.0 as usize].floats[row * width..][..width]
    }

    // `prepare` has checked every weight's kind against the plan, and the plan its ops.
    pub(super) fn ternary(&self, id: WeightId) -> &TernaryMatrix {
        match &*self.weights[id.0 as usize] {
            WeightData::Ternary(matrix) => matrix,
            other => unreachable!("checked by prepare: {}", other.spec()),
        }
    }

    pub(super) fn dense(&self, id: WeightId) -> &DenseMatrix {
        match &*self.weights[id.0 as usize] {
            WeightData::Dense(matrix) => matrix,
            other => unreachable!("checked by prepare: {}", other.spec()),
        }
    }

    pub(super) fn vector(&self, id: WeightId) -> &[f32] {
        match &*self.weights[id.0 as usize] {
            WeightData::Vector(values) => values,
            other => unreachable!("checked by prepare: {}", other.spec()),
        }
    }

    pub(super) fn rope(&self, id: WeightId) -> &RopeTable {
        match &*self.weights[id.0 as usize] {
            WeightData::Rope(table) => table,
            other => unreachable!("checked by prepare: {}", other.spec()),
        }
    }
}
