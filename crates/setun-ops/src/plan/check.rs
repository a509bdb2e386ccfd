//! Checks of one operation against the weights and buffers that it names.

mod hybrid;

use super::{BufferKind, BufferSpec, Plan, RowSet};
use crate::{
    HAS_RECURRENT,
    op::{Bias, BufferId, HeadShape, Linear, Norm, Op, WeightId},
    quantize::is_group,
    weight::WeightSpec,
};

pub(super) type Check<T = ()> = Result<T, String>;

pub(super) fn check(plan: &Plan, op: &Op) -> Check {
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
                return Err("requested rows cannot become all rows".into());
            }
            Ok(())
        }
        Op::Quantize { x, norm, out } => {
            let x_spec = spec(plan, *x)?;
            float(plan, *x, x_spec.width, x_spec.rows)?;
            quantized(plan, *out, x_spec.width, x_spec.rows)?;
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
            at_least(plan, *qkv, shape.qkv_width())?;
            match weight(plan, *rope)? {
                WeightSpec::Rope { head_dim, .. } if head_dim <= shape.head_dim => Ok(()),
                found => {
                    Err(format!("needs a RoPE table for heads of {}, got {found}", shape.head_dim))
                }
            }
        }
        Op::Attention { qkv, shape, layer, out } => {
            check_heads(plan, *shape, *layer)?;
            differ(*qkv, *out)?;
            at_least(plan, *qkv, shape.qkv_width())?;
            float(plan, *out, shape.query_width(), RowSet::Batch)
        }
        Op::SigmoidGate { .. }
        | Op::DeltaNet { .. }
        | Op::DenseMatmul { .. }
        | Op::Hadamard { .. } => {
            let none = || Err("is in no build without recurrent layers".into());
            if HAS_RECURRENT { hybrid::check(plan, op) } else { none() }
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
        Op::TopLogits { x, table, out } => {
            let (_, hidden) = dense(plan, *table)?;
            float(plan, *x, hidden, RowSet::Wanted)?;
            let capacity = spec(plan, *out)?.width;
            buffer(plan, *out, BufferKind::Ranked, capacity, RowSet::Wanted)
        }
        Op::Argmax { x, table, out, .. } => {
            let (_, hidden) = dense(plan, *table)?;
            float(plan, *x, hidden, RowSet::Wanted)?;
            buffer(plan, *out, BufferKind::Tokens, 1, RowSet::Wanted)?;
            is_last_choice(plan)
        }
    }
}

/// What a choice leaves for the next step would be read by this one.
fn is_last_choice(plan: &Plan) -> Check {
    let chooses = |op: &&Op| matches!(op, Op::Argmax { .. });
    let is_last = plan.ops.last().as_ref().is_some_and(chooses);
    if is_last && plan.ops.iter().filter(chooses).count() == 1 {
        Ok(())
    } else {
        Err("is not the last operation".into())
    }
}

/// A buffer is read only after the host or an op has written it. (That a write covers all that is read is
/// for the tests of plans.)
pub(super) fn check_written(op: &Op, written: &mut [bool]) -> Check {
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
    let group = quantized(plan, linear.x, columns, rows)?;
    if let Some(Bias { weight, before_scale }) = linear.bias {
        let len = vector(plan, weight)?;
        if len != outputs {
            return Err(format!("a bias of {len} for {outputs} outputs"));
        }
        if before_scale && (grouped || group.is_some()) {
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

/// A float buffer of all rows that is this wide or wider.
fn at_least(plan: &Plan, id: BufferId, width: usize) -> Check {
    let found = spec(plan, id)?.width;
    if found < width {
        return Err(format!("buffer {} is {found} wide, expected {width} or more", id.0));
    }
    float(plan, id, found, RowSet::Batch)
}

/// The columns of a group of a quantized buffer.
fn quantized(plan: &Plan, id: BufferId, width: usize, rows: RowSet) -> Check<Option<usize>> {
    let BufferKind::Quantized { group } = spec(plan, id)?.kind else {
        return Err(format!("buffer {} is not quantized", id.0));
    };
    buffer(plan, id, BufferKind::Quantized { group }, width, rows)?;
    match group {
        Some(columns) if !is_group(columns) => {
            Err(format!("groups of {columns} columns, expected a multiple of 32"))
        }
        group => Ok(group),
    }
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
