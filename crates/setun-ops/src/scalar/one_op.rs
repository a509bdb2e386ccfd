//! Operations one by one, over memory that a test has written: for [`comparison`](crate::comparison).

use super::ScalarStep;
use crate::{
    backend::check_step, batch_inputs::BatchInputs, error::OpsError, host_cache::HostCache,
    op::BufferId, plan::BufferKind, ternary::padded_columns,
};

impl ScalarStep {
    /// One operation.
    pub(crate) fn run_one(
        &mut self,
        op: usize,
        cache: &mut HostCache,
        inputs: &BatchInputs,
    ) -> Result<(), OpsError> {
        check_step(&self.plan, cache.spec(), cache.sizes(), inputs)?;
        self.run_op(&self.plan.ops()[op].clone(), cache, inputs);
        Ok(())
    }

    pub(crate) fn set(&mut self, id: BufferId, values: &[u8], scales: &[f32]) {
        let width = self.width(id);
        let kind = self.plan.buffer(id).kind;
        let buffer = &mut self.buffers[id.0 as usize];
        match kind {
            BufferKind::F32 => bytemuck::cast_slice_mut(&mut buffer.floats).copy_from_slice(values),
            BufferKind::Ranked => {
                bytemuck::cast_slice_mut(&mut buffer.ranked).copy_from_slice(values);
            }
            BufferKind::Tokens => {
                bytemuck::cast_slice_mut(&mut buffer.tokens).copy_from_slice(values);
            }
            BufferKind::Quantized { .. } => {
                buffer.floats.copy_from_slice(scales);
                let rows = buffer.codes.chunks_exact_mut(padded_columns(width));
                for (row, values) in rows.zip(values.chunks_exact(width)) {
                    row[..width].copy_from_slice(bytemuck::cast_slice(values));
                }
            }
        }
    }

    pub(crate) fn scales(&self, id: BufferId) -> &[f32] {
        &self.buffers[id.0 as usize].floats
    }
}
