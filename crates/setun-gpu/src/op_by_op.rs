//! Operations one by one, over memory that a test has written.

use bytemuck::{cast_slice, cast_slice_mut};
use setun_ops::{
    BatchInputs, BufferId, OpsError, backend::check_step, comparison::OpByOp, plan::BufferKind,
    quantize::scales_of_row, ternary::padded_columns,
};

use crate::{
    backend::GpuBackend, cache::GpuCache, executor::Executor, gpu_step::GpuStep, launch::chunks,
};

impl<E: Executor> OpByOp for GpuBackend<E> {
    fn run_op(
        &mut self,
        step: &mut GpuStep<E>,
        cache: &mut GpuCache<E::Buffer>,
        inputs: &BatchInputs,
        op: usize,
    ) -> Result<(), OpsError> {
        check_step(&step.plan, &cache.spec, cache.sizes(), inputs)?;
        step.layout.check(inputs)?;
        self.write_inputs(step, inputs)?;
        let list = self.record(step, cache, |launch| launch.op == op)?;
        self.executor.play(&list, chunks(inputs, 1))
    }

    fn set(&mut self, step: &mut GpuStep<E>, buffer: BufferId, values: &[u8], scales: &[f32]) {
        let (spec, rows) = (step.plan.buffer(buffer), step.plan.buffer_rows(buffer));
        let Some(target) = self.memory_of(buffer) else { return };
        // What fails is reported by the operation that follows.
        let BufferKind::Quantized { group } = spec.kind else {
            let _ = self.executor.write(&target, 0, values);
            return;
        };
        let padded = padded_columns(spec.width);
        let mut codes = vec![0; rows * padded];
        let mut sums = vec![0i32; rows];
        for (row, values) in values.chunks_exact(spec.width).enumerate() {
            codes[row * padded..][..spec.width].copy_from_slice(values);
            sums[row] = values.iter().map(|code| i32::from(code.cast_signed())).sum();
        }
        let _ = self.executor.write(&target, 0, &codes);
        let _ = self.executor.write(&target, codes.len() as u64, cast_slice(scales));
        if group.is_none() {
            let offset = codes.len() + size_of_val(scales);
            let _ = self.executor.write(&target, offset as u64, cast_slice(&sums));
        }
    }

    async fn read_scales(
        &mut self,
        step: &GpuStep<E>,
        buffer: BufferId,
    ) -> Result<Vec<f32>, OpsError> {
        let (spec, rows) = (step.plan.buffer(buffer), step.plan.buffer_rows(buffer));
        let mut scales = vec![0.0; rows * scales_of_row(spec.width, spec.kind.group())];
        let offset = (rows * padded_columns(spec.width)) as u64;
        if let Some(memory) = self.memory_of(buffer) {
            self.executor.read(&memory, offset, cast_slice_mut(&mut scales)).await?;
        }
        Ok(scales)
    }
}
