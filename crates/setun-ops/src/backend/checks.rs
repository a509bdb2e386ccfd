//! Checks that every backend makes before it computes.

use std::ops::Range;

use crate::{
    batch_inputs::{BatchInputs, InputLimits},
    cache::CacheSpec,
    error::OpsError,
    numeric::to_u32,
    op::{BufferId, Op, WeightId},
    plan::{BufferKind, BufferSpec, Plan},
    weight::WeightSpec,
};

/// Checks a step against its plan and cache. A backend calls this before it computes, and may
/// then trust every index: in particular no two rows write to one place of the cache.
///
/// # Errors
///
/// If the cache is of another shape than the plan's, or an input is out of range.
pub fn check_step(
    plan: &Plan,
    cache: &CacheSpec,
    (blocks, states): (usize, usize),
    inputs: &BatchInputs,
) -> Result<(), OpsError> {
    if plan.cache() != cache {
        return Err(OpsError::Cache { expected: Box::new(*plan.cache()), found: Box::new(*cache) });
    }
    inputs.check(&limits(plan, (blocks, states)))
}

/// Checks steps that follow each other, of which a backend plays at most `most`. `sizes` are the
/// blocks and recurrent states of the cache.
///
/// # Errors
///
/// As [`check_step`]; also if their number is another or they do not follow each other
/// ([`BatchInputs::check_multi_step`]).
pub fn check_multi_step(
    plan: &Plan,
    cache: &CacheSpec,
    sizes: (usize, usize),
    inputs: &BatchInputs,
    (steps, most): (usize, usize),
) -> Result<(), OpsError> {
    check_step(plan, cache, sizes, inputs)?;
    if steps == 0 || steps > most {
        let what = "multi-step decoding (at least 1)";
        return Err(OpsError::Inputs { what, expected: most, found: steps });
    }
    if steps == 1 { Ok(()) } else { inputs.check_multi_step(&limits(plan, sizes), steps) }
}

fn limits(plan: &Plan, (blocks, states): (usize, usize)) -> InputLimits {
    let (vocab, positions) = plan.token_and_position_limits();
    let has_nets = plan.ops().iter().any(|op| matches!(op, Op::DeltaNet { .. }));
    let recurrent = plan.cache().recurrent.filter(|_| has_nets); // a head alone has none
    InputLimits {
        rows: plan.rows(),
        wanted: plan.wanted(),
        vocab,
        positions,
        blocks,
        block_positions: plan.cache().block_positions,
        recurrent: recurrent.map(|spec| (spec, states)),
        top_logits: plan.top_logits_limits(),
        argmax: plan.argmax_limits(),
    }
}

/// Checks what is to be [written](crate::Backend::write) to an input, and says which of its elements
/// these are.
///
/// # Errors
///
/// If the buffer is no input of the plan, has no such rows, or they are of another size.
pub fn check_write(
    plan: &Plan,
    buffer: BufferId,
    rows: &Range<usize>,
    data: &[u8],
) -> Result<Range<usize>, OpsError> {
    let error = |what| Err(OpsError::Write { id: buffer, what });
    if !plan.inputs().contains(&buffer) {
        return error("no input of the plan");
    }
    if rows.start > rows.end || rows.end > plan.buffer_rows(buffer) {
        return error("rows out of range");
    }
    let width = plan.buffer(buffer).width;
    if data.len() != rows.len() * width * size_of::<f32>() {
        return error("data of another size");
    }
    Ok(rows.start * width..rows.end * width)
}

/// Checks what is to be [read](crate::Backend::read) from a buffer, and gives the buffer's specification.
/// A backend keeps the chosen tokens of `token_steps` steps.
///
/// # Errors
///
/// If the buffer is not in the plan, has no such rows, or `out` is of another size.
pub fn check_read(
    plan: &Plan,
    buffer: BufferId,
    rows: &Range<usize>,
    out: &[u8],
    token_steps: usize,
) -> Result<BufferSpec, OpsError> {
    let error = |what| OpsError::Read { id: buffer, what };
    let spec = *plan.buffers().get(buffer.0 as usize).ok_or(error("not in the plan"))?;
    let steps = if spec.kind == BufferKind::Tokens { token_steps } else { 1 };
    if rows.start > rows.end || rows.end > steps * plan.buffer_rows(buffer) {
        return Err(error("rows out of range"));
    }
    if out.len() != rows.len() * spec.width * spec.kind.element_bytes() {
        return Err(error("destination of another size"));
    }
    Ok(spec)
}

/// Checks that the weights given to [`Backend::prepare`](crate::Backend::prepare) are those that the plan names.
///
/// # Errors
///
/// If one is missing, or its kind or shape is another.
pub fn check_weights(
    plan: &Plan,
    given: impl ExactSizeIterator<Item = WeightSpec>,
) -> Result<(), OpsError> {
    let expected = plan.weights();
    if given.len() != expected.len() {
        return Err(OpsError::Length {
            what: "weights of a plan",
            expected: expected.len(),
            found: given.len(),
        });
    }
    for (index, (expected, found)) in expected.iter().zip(given).enumerate() {
        if *expected != found {
            return Err(OpsError::Weight {
                id: WeightId(to_u32(index)),
                expected: expected.to_string(),
                found: found.to_string(),
            });
        }
    }
    Ok(())
}
