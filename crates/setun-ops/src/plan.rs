//! A forward pass as data.
//!
//! A plan lists [`Op`]s over numbered buffers of known sizes. It is made once for a bucket of
//! rows and serves every step of at most that many; what changes from step to step comes in
//! [`BatchInputs`](crate::BatchInputs). [`PlanBuilder::finish`] checks every op against the
//! weights and buffers it names, so that a backend may trust them.

use crate::{
    best::Ranked,
    cache::CacheSpec,
    error::OpsError,
    op::{Bias, BufferId, HeadShape, Linear, Norm, Op, WeightId},
    weight::WeightSpec,
};

/// Element type of a buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BufferKind {
    /// `f32`
    F32,
    /// int8 codes, padded with zeros to whole blocks, and a scale and a sum for each row.
    Quantized,
    /// [`Ranked`] tokens with their logits.
    Ranked,
}

impl BufferKind {
    /// Bytes of an element as [`Backend::read`](crate::Backend::read) gives it.
    #[must_use]
    pub fn element_bytes(self) -> usize {
        match self {
            Self::F32 => size_of::<f32>(),
            Self::Quantized => size_of::<i8>(),
            Self::Ranked => size_of::<Ranked>(),
        }
    }
}

/// Which rows of a step a buffer holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RowSet {
    /// All rows of the step.
    Batch,
    /// Those whose logits are wanted.
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
    weights: Vec<WeightSpec>,
    cache: CacheSpec,
}

impl Plan {
    /// Most rows of a step.
    #[must_use]
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Most rows of a step whose logits are wanted.
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

    /// The weights; [`WeightId`]`(i)` is element `i`.
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

    /// Tokens of the table and capacity of a row of the plan's [`Op::Best`], the least where it
    /// has several: what requests of a step are checked against. None where it has none.
    #[must_use]
    pub fn best_limits(&self) -> Option<(usize, usize)> {
        let limits = self.ops.iter().filter_map(|op| match op {
            Op::Best { table, out, .. } => match self.weights[table.0 as usize] {
                WeightSpec::Dense { rows, .. } => Some((rows, self.buffer(*out).width)),
                _ => None,
            },
            _ => None,
        });
        limits.reduce(|a, b| (a.0.min(b.0), a.1.min(b.1)))
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
        let plan = Plan { rows, wanted, ops: vec![], buffers: vec![], weights, cache };
        Self { plan, released: vec![], reuse: true }
    }

    /// Gives out no buffer twice, so that each can be read after the step: for goldens.
    #[must_use]
    pub fn keep_buffers(mut self) -> Self {
        self.reuse = false;
        self
    }

    /// A buffer to write to.
    ///
    /// # Panics
    ///
    /// Past 2^32 buffers.
    pub fn buffer(&mut self, kind: BufferKind, width: usize, rows: RowSet) -> BufferId {
        let spec = BufferSpec { kind, width, rows };
        if let Some(index) = self.released.iter().position(|&id| self.plan.buffer(id) == spec) {
            return self.released.swap_remove(index);
        }
        self.plan.buffers.push(spec);
        BufferId(u32::try_from(self.plan.buffers.len() - 1).expect("fewer than 2^32 buffers"))
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
    /// a buffer that no op before it has written.
    pub fn finish(self) -> Result<Plan, OpsError> {
        self.plan.cache.check()?;
        let mut written = vec![false; self.plan.buffers.len()];
        for (index, op) in self.plan.ops.iter().enumerate() {
            check(&self.plan, op)
                .and_then(|()| check_written(op, &mut written))
                .map_err(|what| OpsError::Plan { op: index, name: op.name(), what })?;
        }
        Ok(self.plan)
    }
}

type Check<T = ()> = Result<T, String>;

fn check(plan: &Plan, op: &Op) -> Check {
    match op {
        Op::Embed { table, out } => {
            let (_, hidden) = dense(plan, *table)?;
            float(plan, *out, hidden, RowSet::Batch)
        }
        Op::RmsNorm { x, norm, out } => {
            let (x_spec, out_spec) = (spec(plan, *x)?, spec(plan, *out)?);
            differ(*x, *out)?;
            check_norm(plan, *norm, x_spec.width)?;
            float(plan, *x, x_spec.width, x_spec.rows)?;
            float(plan, *out, x_spec.width, out_spec.rows)?;
            if x_spec.rows == RowSet::Wanted && out_spec.rows == RowSet::Batch {
                return Err("wanted rows cannot become all rows".into());
            }
            Ok(())
        }
        Op::Quantize { x, norm, out } => {
            let x_spec = spec(plan, *x)?;
            float(plan, *x, x_spec.width, x_spec.rows)?;
            buffer(plan, *out, BufferKind::Quantized, x_spec.width, x_spec.rows)?;
            norm.map_or(Ok(()), |norm| check_norm(plan, norm, x_spec.width))
        }
        Op::TernaryMatmul { linear, residual, out, out_column } => {
            let (outputs, rows) = check_linear(plan, linear)?;
            let out_spec = spec(plan, *out)?;
            float(plan, *out, out_spec.width, rows)?;
            if out_column.checked_add(outputs).is_none_or(|end| end > out_spec.width) {
                return Err(format!(
                    "columns {out_column}.. of {outputs} outputs exceed buffer width {}",
                    out_spec.width
                ));
            }
            residual.map_or(Ok(()), |residual| float(plan, residual, outputs, rows))?;
            if residual == &Some(*out) && *out_column != 0 {
                return Err("a residual in place starts at column 0".into());
            }
            Ok(())
        }
        Op::HeadNorm { x, column, heads, norm } => {
            let x_spec = spec(plan, *x)?;
            float(plan, *x, x_spec.width, x_spec.rows)?;
            let head_dim = vector(plan, norm.gain)?;
            check_norm(plan, *norm, head_dim)?;
            let end = heads.checked_mul(head_dim).and_then(|width| width.checked_add(*column));
            if end.is_none_or(|end| end > x_spec.width) {
                return Err(format!("{heads} heads of {head_dim} from column {column} exceed it"));
            }
            Ok(())
        }
        Op::RopeAppend { qkv, shape, rope, layer } => {
            check_heads(plan, *shape, *layer)?;
            float(plan, *qkv, shape.qkv_width(), RowSet::Batch)?;
            match weight(plan, *rope)? {
                WeightSpec::Rope { head_dim, .. } if head_dim == shape.head_dim => Ok(()),
                found => {
                    Err(format!("needs a RoPE table for heads of {}, got {found}", shape.head_dim))
                }
            }
        }
        Op::Attention { qkv, shape, layer, out } => {
            check_heads(plan, *shape, *layer)?;
            differ(*qkv, *out)?;
            float(plan, *qkv, shape.qkv_width(), RowSet::Batch)?;
            float(plan, *out, shape.query_width(), RowSet::Batch)
        }
        Op::Gate { gate, up, out, .. } => {
            let gated = check_linear(plan, gate)?;
            let upped = check_linear(plan, up)?;
            if gated != upped {
                return Err(format!("gate has {} outputs, up has {}", gated.0, upped.0));
            }
            float(plan, *out, gated.0, gated.1)
        }
        Op::Head { x, table, out } => {
            let (vocab, hidden) = dense(plan, *table)?;
            let rows = spec(plan, *x)?.rows;
            differ(*x, *out)?;
            float(plan, *x, hidden, rows)?;
            float(plan, *out, vocab, rows)
        }
        Op::Best { x, table, out } => {
            let (_, hidden) = dense(plan, *table)?;
            float(plan, *x, hidden, RowSet::Wanted)?;
            let capacity = spec(plan, *out)?.width;
            buffer(plan, *out, BufferKind::Ranked, capacity, RowSet::Wanted)
        }
    }
}

/// A buffer is read only after an op has written it. (That a write covers all that is read is
/// for the tests of plans.)
fn check_written(op: &Op, written: &mut [bool]) -> Check {
    let (reads, write) = op.accesses();
    for id in reads.into_iter().flatten() {
        if !written.get(id.0 as usize).is_some_and(|written| *written) {
            return Err(format!("buffer {} is read before it is written", id.0));
        }
    }
    if let Some(written) = write.and_then(|id| written.get_mut(id.0 as usize)) {
        *written = true;
    }
    Ok(())
}

fn check_linear(plan: &Plan, linear: &Linear) -> Check<(usize, RowSet)> {
    let WeightSpec::Ternary { rows: outputs, columns, grouped } = weight(plan, linear.weight)?
    else {
        return Err(format!("weight {} is not ternary", linear.weight.0));
    };
    let rows = spec(plan, linear.x)?.rows;
    buffer(plan, linear.x, BufferKind::Quantized, columns, rows)?;
    if let Some(Bias { weight, before_scale }) = linear.bias {
        let len = vector(plan, weight)?;
        if len != outputs {
            return Err(format!("a bias of {len} for {outputs} outputs"));
        }
        if before_scale && grouped {
            return Err("a bias before the scale needs one scale an output".into());
        }
    }
    Ok((outputs, rows))
}

fn check_heads(plan: &Plan, shape: HeadShape, layer: usize) -> Check {
    let cache = plan.cache;
    // Queries, keys and values are at most three times as wide as the queries.
    let width = shape.heads.checked_mul(3).and_then(|heads| heads.checked_mul(shape.head_dim));
    if width.is_none_or(|width| width == 0) {
        return Err(format!("{shape:?} has no width, or too much"));
    }
    if shape.kv_heads == 0
        || !shape.heads.is_multiple_of(shape.kv_heads)
        || !shape.head_dim.is_multiple_of(2)
    {
        return Err(format!("{shape:?} does not share its KV heads evenly, or is odd"));
    }
    if layer >= cache.layers || shape.kv_heads != cache.kv_heads || shape.head_dim != cache.head_dim
    {
        return Err(format!("layer {layer} with {shape:?} does not fit the cache {cache:?}"));
    }
    Ok(())
}

fn check_norm(plan: &Plan, norm: Norm, width: usize) -> Check {
    let len = vector(plan, norm.gain)?;
    if len != width || len == 0 {
        return Err(format!("a gain of {len} for rows of {width}"));
    }
    if !norm.eps.is_finite() || norm.eps < 0.0 {
        return Err(format!("an epsilon of {}", norm.eps));
    }
    Ok(())
}

fn weight(plan: &Plan, id: WeightId) -> Check<WeightSpec> {
    plan.weights.get(id.0 as usize).copied().ok_or_else(|| format!("no weight {}", id.0))
}

fn vector(plan: &Plan, id: WeightId) -> Check<usize> {
    match weight(plan, id)? {
        WeightSpec::Vector { len } => Ok(len),
        found => Err(format!("weight {} is {found}, expected a vector", id.0)),
    }
}

fn dense(plan: &Plan, id: WeightId) -> Check<(usize, usize)> {
    match weight(plan, id)? {
        WeightSpec::Dense { rows, columns } => Ok((rows, columns)),
        found => Err(format!("weight {} is {found}, expected a dense matrix", id.0)),
    }
}

fn spec(plan: &Plan, id: BufferId) -> Check<BufferSpec> {
    plan.buffers.get(id.0 as usize).copied().ok_or_else(|| format!("no buffer {}", id.0))
}

fn float(plan: &Plan, id: BufferId, width: usize, rows: RowSet) -> Check {
    buffer(plan, id, BufferKind::F32, width, rows)
}

fn buffer(plan: &Plan, id: BufferId, kind: BufferKind, width: usize, rows: RowSet) -> Check {
    let (found, expected) = (spec(plan, id)?, BufferSpec { kind, width, rows });
    if found == expected && width > 0 {
        Ok(())
    } else {
        Err(format!("buffer {} is {found:?}, expected {expected:?}", id.0))
    }
}

fn differ(x: BufferId, out: BufferId) -> Check {
    if x == out { Err("cannot work in place".into()) } else { Ok(()) }
}
