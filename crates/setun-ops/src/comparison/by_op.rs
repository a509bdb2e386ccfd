//! Parity of a backend whose floats may differ: each operation by itself, from the same bits.
//!
//! Before each operation the backend under test is given the memory of the definitions, so that
//! nothing that differed before matters. Integer parts must be equal; floats may differ as the
//! operation's [`Agreement`](crate::op::Agreement) says.

mod tolerance;

use std::future::Future;

use super::{
    Case,
    compare::{Disagreement, Place, Running},
};
use crate::{
    Backend, BatchInputs, BufferId, HAS_RECURRENT, OpsError, ScalarBackend, host_cache::HostCache,
    op::Op, plan::BufferKind, quantize::scales_of_row, recurrent::all_states, scalar::ScalarStep,
};

/// A backend whose operations can be run one by one.
pub trait OpByOp: Backend {
    /// Runs one operation of the plan over the buffers as they are.
    ///
    /// # Errors
    ///
    /// As [`Backend::run`].
    fn run_op(
        &mut self,
        step: &mut Self::Prepared,
        cache: &mut Self::Cache,
        inputs: &BatchInputs,
        op: usize,
    ) -> Result<(), OpsError>;

    /// Overwrites a buffer with what [`Backend::read`] gives of all its rows; `scales` are those
    /// of a quantized one, `[rows]` or `[rows, groups]`.
    fn set(&mut self, step: &mut Self::Prepared, buffer: BufferId, values: &[u8], scales: &[f32]);

    /// The scales of a quantized buffer, `[rows]` or `[rows, groups]`.
    fn read_scales(
        &mut self,
        step: &Self::Prepared,
        buffer: BufferId,
    ) -> impl Future<Output = Result<Vec<f32>, OpsError>>;
}

impl OpByOp for ScalarBackend {
    fn run_op(
        &mut self,
        step: &mut ScalarStep,
        cache: &mut Self::Cache,
        inputs: &BatchInputs,
        op: usize,
    ) -> Result<(), OpsError> {
        step.run_one(op, cache, inputs)
    }

    fn set(&mut self, step: &mut ScalarStep, buffer: BufferId, values: &[u8], scales: &[f32]) {
        step.set(buffer, values, scales);
    }

    async fn read_scales(
        &mut self,
        step: &ScalarStep,
        buffer: BufferId,
    ) -> Result<Vec<f32>, OpsError> {
        Ok(step.scales(buffer).to_vec())
    }
}

/// A buffer's memory.
#[derive(Clone, Debug, Default)]
struct Memory {
    values: Vec<u8>,
    scales: Vec<f32>,
}

/// What an operation worked on.
struct Before<'a> {
    values: &'a [u8],
    cache: &'a HostCache,
}

impl Case {
    /// Runs each operation of each step on `backend` from the definitions' memory, and compares
    /// what it has written.
    ///
    /// # Errors
    ///
    /// The first difference beyond what the operation allows, or the first call that failed.
    pub async fn compare_by_op<B: OpByOp>(&self, backend: &mut B) -> Result<(), Disagreement> {
        let mut scalar = ScalarBackend;
        let mut expected = Running::start(self, &mut scalar)?;
        let mut found = Running::start(self, backend)?;
        for (step, inputs) in self.steps.iter().enumerate() {
            for (index, op) in self.plan.ops().iter().enumerate() {
                let (reads, write) = op.accesses();
                let mut before = Memory::default();
                for id in reads.into_iter().chain([write]).flatten() {
                    before = expected.memory(self, id).await?;
                    found.backend.set(&mut found.step, id, &before.values, &before.scales);
                }
                let cache = expected.cache(self).await?;
                found.write_cache(self, &cache)?;
                if HAS_RECURRENT && self.states() > 0 {
                    let states = expected.states(self).await?;
                    found.write_states(self, &states)?;
                }
                expected.run_op(inputs, index)?;
                found.run_op(inputs, index)?;
                if let Some(id) = write {
                    let input = match op {
                        Op::Attention { qkv: x, .. }
                        | Op::Quantize { x, .. }
                        | Op::Head { x, .. }
                        | Op::TopLogits { x, .. }
                        | Op::Argmax { x, .. } => expected.memory(self, *x).await?.values,
                        _ => before.values,
                    };
                    let a = expected.memory(self, id).await?;
                    let b = found.memory(self, id).await?;
                    let before = Before { values: &input, cache: &expected.cache };
                    self.compare_op(step, inputs, (index, id), &before, (&a, &b))?;
                }
                let (a, b) = (expected.cache(self).await?, found.cache(self).await?);
                tolerance::compare_cache(step, self.plan.cache(), &a, &b)?;
                if HAS_RECURRENT {
                    let (a, b) = (expected.states(self).await?, found.states(self).await?);
                    tolerance::compare_states(step, self.plan.cache(), &a, &b)?;
                }
            }
        }
        Ok(())
    }

    fn compare_op(
        &self,
        step: usize,
        inputs: &BatchInputs,
        (op, id): (usize, BufferId),
        before: &Before<'_>,
        (expected, found): (&Memory, &Memory),
    ) -> Result<(), Disagreement> {
        let spec = self.plan.buffer(id);
        let op = &self.plan.ops()[op];
        let magnitudes = match op {
            Op::Head { table, .. } | Op::TopLogits { table, .. } | Op::Argmax { table, .. } => {
                tolerance::logit_magnitudes(self, *table, before.values)
            }
            Op::Attention { shape, .. } => {
                tolerance::attention_magnitudes(*shape, before.values, before.cache)
            }
            _ => vec![],
        };
        let place = Place { step, buffer: id, width: spec.width };
        let at = tolerance::At { op, place, magnitudes };
        match spec.kind {
            BufferKind::F32 => tolerance::compare_floats(&at, &expected.values, &found.values),
            BufferKind::Quantized { group } => {
                tolerance::compare_scales(&at, &expected.scales, &found.scales)?;
                let groups = scales_of_row(spec.width, group);
                let rows = inputs.rows().min(expected.scales.len() / groups);
                tolerance::compare_codes(
                    self,
                    &at,
                    group,
                    before.values,
                    rows,
                    &expected.values,
                    &found.values,
                )
            }
            BufferKind::Ranked => {
                tolerance::compare_ranked(&at, inputs, &expected.values, &found.values)
            }
            BufferKind::Tokens => {
                let tokens = (&*expected.values, &*found.values);
                tolerance::compare_tokens(self, &at, inputs, before.values, tokens)
            }
        }
    }
}

impl<B: OpByOp> Running<'_, B> {
    fn run_op(&mut self, inputs: &BatchInputs, op: usize) -> Result<(), OpsError> {
        self.backend.run_op(&mut self.step, &mut self.cache, inputs, op)
    }

    async fn memory(&mut self, case: &Case, id: BufferId) -> Result<Memory, OpsError> {
        let values = self.buffer(case, id).await?;
        let scales = match case.plan.buffer(id).kind {
            BufferKind::Quantized { .. } => self.backend.read_scales(&self.step, id).await?,
            _ => vec![],
        };
        Ok(Memory { values, scales })
    }

    fn write_cache(&mut self, case: &Case, bytes: &[u8]) -> Result<(), OpsError> {
        let blocks: Vec<_> =
            (0..case.blocks).map(|block| crate::BlockId(crate::numeric::to_u32(block))).collect();
        self.backend.write_blocks(&mut self.cache, &blocks, bytes)
    }

    fn write_states(&mut self, case: &Case, bytes: &[u8]) -> Result<(), OpsError> {
        self.backend.write_states(&mut self.cache, &all_states(case.states()), bytes)
    }
}
