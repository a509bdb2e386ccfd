//! A forward pass as data.
//!
//! A plan lists [`Op`]s over numbered buffers of known sizes. It is made once for a bucket of
//! rows and serves every step of at most that many; what changes from step to step comes in
//! [`BatchInputs`](crate::BatchInputs). [`PlanBuilder::finish`] checks every op against the
//! weights and buffers it names, so that a backend may trust them.

mod check;

use check::{check, check_written};

use crate::{
    cache::CacheSpec,
    error::OpsError,
    numeric::to_u32,
    op::{ArgmaxCapacity, BufferId, Op},
    top_logits::Ranked,
    weight::WeightSpec,
};

/// Element type of a buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BufferKind {
    /// `f32`
    F32,
    /// int8 codes, padded with zeros to whole blocks, and a scale and a sum for each row, or for
    /// each group of its columns.
    Quantized {
        /// Columns that share a scale, a multiple of 32; none where all of a row do.
        group: Option<usize>,
    },
    /// [`Ranked`] tokens with their logits.
    Ranked,
    /// Tokens.
    Tokens,
}

impl BufferKind {
    /// Bytes of an element as [`Backend::read`](crate::Backend::read) gives it.
    #[must_use]
    pub fn element_bytes(self) -> usize {
        match self {
            Self::F32 => size_of::<f32>(),
            Self::Quantized { .. } => size_of::<i8>(),
            Self::Ranked => size_of::<Ranked>(),
            Self::Tokens => size_of::<u32>(),
        }
    }

    /// Columns that share a scale, where codes have one for each group of them.
    #[must_use]
    pub fn group(self) -> Option<usize> {
        if let Self::Quantized { group } = self { group } else { None }
    }
}

/// Which rows of a step a buffer holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RowSet {
    /// All rows of the step.
    Batch,
    /// Those whose logits are requested.
    Wanted,
}

/// Kind and width of a buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BufferSpec {
    /// Element type.
    pub kind: BufferKind,
    /// Elements of a row, without padding.
    pub width: usize,
    /// Its rows.
    pub rows: RowSet,
}

/// A checked list of operations. See the [module](self).
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    rows: usize,
    wanted: usize,
    ops: Vec<Op>,
    buffers: Vec<BufferSpec>,
    inputs: Vec<BufferId>,
    weights: Vec<WeightSpec>,
    cache: CacheSpec,
}

impl Plan {
    /// Most rows of a step.
    #[must_use]
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Most rows of a step whose logits are requested.
    #[must_use]
    pub fn wanted(&self) -> usize {
        self.wanted
    }

    /// The operations, in order.
    #[must_use]
    pub fn ops(&self) -> &[Op] {
        &self.ops
    }

    /// The buffers; [`BufferId`]`(i)` is element `i`.
    #[must_use]
    pub fn buffers(&self) -> &[BufferSpec] {
        &self.buffers
    }

    /// Each buffer's id, specification and [rows](Self::buffer_rows).
    #[must_use]
    pub fn each_buffer(
        &self,
    ) -> impl ExactSizeIterator<Item = (BufferId, BufferSpec, usize)> + Clone {
        self.buffers.iter().enumerate().map(|(index, &spec)| {
            let id = BufferId(to_u32(index));
            (id, spec, self.buffer_rows(id))
        })
    }

    /// The buffers that are [written](crate::Backend::write) by the host before each step.
    #[must_use]
    pub fn inputs(&self) -> &[BufferId] {
        &self.inputs
    }

    /// The weights; [`WeightId`](crate::WeightId)`(i)` is element `i`.
    #[must_use]
    pub fn weights(&self) -> &[WeightSpec] {
        &self.weights
    }

    /// Shape of the cache that steps run over.
    #[must_use]
    pub fn cache(&self) -> &CacheSpec {
        &self.cache
    }

    /// A buffer's specification.
    ///
    /// # Panics
    ///
    /// If the id is not of this plan.
    #[must_use]
    pub fn buffer(&self, id: BufferId) -> BufferSpec {
        self.buffers[id.0 as usize]
    }

    /// Most rows that a buffer holds.
    ///
    /// # Panics
    ///
    /// If the id is not of this plan.
    #[must_use]
    pub fn buffer_rows(&self, id: BufferId) -> usize {
        match self.buffer(id).rows {
            RowSet::Batch => self.rows,
            RowSet::Wanted => self.wanted,
        }
    }

    /// Tokens of the embedding table, and positions of the `RoPE` table: what tokens and
    /// positions of a step are checked against. `usize::MAX` where the plan has none.
    #[must_use]
    pub fn token_and_position_limits(&self) -> (usize, usize) {
        let (mut tokens, mut positions) = (usize::MAX, usize::MAX);
        for op in &self.ops {
            match op {
                Op::Embed { table, .. } => {
                    if let WeightSpec::Dense { rows, .. } = self.weights[table.0 as usize] {
                        tokens = tokens.min(rows);
                    }
                }
                Op::RopeAppend { rope, .. } => {
                    if let WeightSpec::Rope { positions: found, .. } = self.weights[rope.0 as usize]
                    {
                        positions = positions.min(found);
                    }
                }
                _ => {}
            }
        }
        (tokens, positions)
    }

    /// Tokens of the table and capacity of a row of the plan's [`Op::TopLogits`], the least where it
    /// has several: what requests of a step are checked against. None where it has none.
    #[must_use]
    pub fn top_logits_limits(&self) -> Option<(usize, usize)> {
        let limits = self.ops.iter().filter_map(|op| match op {
            Op::TopLogits { table, out, .. } => match self.weights[table.0 as usize] {
                WeightSpec::Dense { rows, .. } => Some((rows, self.buffer(*out).width)),
                _ => None,
            },
            _ => None,
        });
        limits.reduce(|a, b| (a.0.min(b.0), a.1.min(b.1)))
    }

    /// Tokens of the table of the plan's [`Op::Argmax`], and the room of its requests. None where
    /// it has none.
    #[must_use]
    pub fn argmax_limits(&self) -> Option<(usize, ArgmaxCapacity)> {
        let Some(Op::Argmax { table, room, .. }) = self.ops.last() else { return None };
        match self.weights[table.0 as usize] {
            WeightSpec::Dense { rows, .. } => Some((rows, *room)),
            _ => None,
        }
    }
}

/// Collects the ops of a [`Plan`], and gives out its buffers.
///
/// A released buffer is given out again for the next of the same specification: lifetimes are
/// planned here, and a backend allocates each buffer once.
#[derive(Debug)]
pub struct PlanBuilder {
    plan: Plan,
    released: Vec<BufferId>,
    reuse: bool,
}

impl PlanBuilder {
    /// A plan for at most `rows` rows, `wanted` of them with logits, over the weights given.
    #[must_use]
    pub fn new(rows: usize, wanted: usize, weights: Vec<WeightSpec>, cache: CacheSpec) -> Self {
        let (ops, buffers, inputs) = (vec![], vec![], vec![]);
        let plan = Plan { rows, wanted, ops, buffers, inputs, weights, cache };
        Self { plan, released: vec![], reuse: true }
    }

    /// Gives out no buffer twice, so that each can be read after the step: for goldens.
    #[must_use]
    pub fn keep_buffers(mut self) -> Self {
        self.reuse = false;
        self
    }

    /// A buffer to write to.
    pub fn buffer(&mut self, kind: BufferKind, width: usize, rows: RowSet) -> BufferId {
        let spec = BufferSpec { kind, width, rows };
        if let Some(index) = self.released.iter().position(|&id| self.plan.buffer(id) == spec) {
            return self.released.swap_remove(index);
        }
        self.plan.buffers.push(spec);
        BufferId(to_u32(self.plan.buffers.len() - 1))
    }

    /// A buffer of floats for all rows that the host writes before each step, `[rows, width]`:
    /// what another plan has computed.
    pub fn input(&mut self, width: usize) -> BufferId {
        let id = self.buffer(BufferKind::F32, width, RowSet::Batch);
        self.plan.inputs.push(id);
        id
    }

    /// Says that no later op reads the buffer.
    pub fn release(&mut self, buffer: BufferId) {
        let known = (buffer.0 as usize) < self.plan.buffers.len();
        if self.reuse && known && !self.released.contains(&buffer) {
            self.released.push(buffer);
        }
    }

    /// Appends an operation.
    pub fn push(&mut self, op: Op) {
        self.plan.ops.push(op);
    }

    /// Checks every op.
    ///
    /// # Errors
    ///
    /// If an op names a weight or buffer that is not there, or of another kind or shape, or reads
    /// a buffer that neither the host nor an op before it has written.
    pub fn finish(self) -> Result<Plan, OpsError> {
        self.plan.cache.check()?;
        let mut written = vec![false; self.plan.buffers.len()];
        self.plan.inputs.iter().for_each(|id| written[id.0 as usize] = true);
        for (index, op) in self.plan.ops.iter().enumerate() {
            check(&self.plan, op)
                .and_then(|()| check_written(op, &mut written))
                .map_err(|what| OpsError::Plan { op: index, name: op.name(), what })?;
        }
        Ok(self.plan)
    }
}
