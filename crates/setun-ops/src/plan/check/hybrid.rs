//! Checks of the operations of layers with recurrent states.

use super::{Check, at_least, check_norm, dense, differ, float, spec, vector};
use crate::{
    delta_net::DeltaNetShape,
    hadamard::is_block,
    op::{DeltaNetWeights, Op},
    plan::{BufferSpec, Plan, RowSet},
};

pub(super) fn check(plan: &Plan, op: &Op) -> Check {
    match op {
        Op::SigmoidGate { x, gate, column } => {
            differ(*x, *gate)?;
            let width = spec(plan, *x)?.width;
            float(plan, *x, width, RowSet::Batch)?;
            at_least(plan, *gate, column.saturating_add(width))
        }
        Op::DeltaNet { x, shape, weights, layer, out } => {
            check_delta_net(plan, *shape, weights, *layer)?;
            differ(*x, *out)?;
            float(plan, *x, shape.input_width(), RowSet::Batch)?;
            float(plan, *out, shape.value_width(), RowSet::Batch)
        }
        Op::DenseMatmul { x, weight, out, out_column } => {
            let (outputs, columns) = dense(plan, *weight)?;
            differ(*x, *out)?;
            float(plan, *x, columns, RowSet::Batch)?;
            at_least(plan, *out, out_column.saturating_add(outputs))
        }
        Op::Hadamard { x, signs, block, .. } => {
            let BufferSpec { width, rows, .. } = spec(plan, *x)?;
            float(plan, *x, width, rows)?;
            if !is_block(*block) || !width.is_multiple_of(*block) {
                return Err(format!("blocks of {block} for rows of {width}"));
            }
            match signs.map(|signs| vector(plan, signs)).transpose()? {
                Some(found) if found != width => Err(format!("{found} signs for rows of {width}")),
                _ => Ok(()),
            }
        }
        _ => Ok(()), // no operation of theirs
    }
}

fn check_delta_net(
    plan: &Plan,
    shape: DeltaNetShape,
    weights: &DeltaNetWeights,
    layer: usize,
) -> Check {
    let found = plan.cache.recurrent;
    if found.is_none_or(|found| found.shape != shape || layer >= found.layers) {
        return Err(format!("layer {layer} with {shape:?} does not fit the states {found:?}"));
    }
    for (id, expected) in [
        (weights.conv, shape.kernel * shape.channels()),
        (weights.decay, shape.value_heads),
        (weights.dt_bias, shape.value_heads),
    ] {
        let found = vector(plan, id)?;
        if found != expected {
            return Err(format!("weight {} has {found} elements, expected {expected}", id.0));
        }
    }
    check_norm(plan, weights.norm, shape.value_dim)
}
