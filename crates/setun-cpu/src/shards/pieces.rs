//! The pieces of a plan that workers compute with the leader, and the message that describes them.

use std::sync::{Arc, Weak};

use setun_ops::{
    BufferId, Op, OpsError, Plan, WeightId,
    op::{Activation, Linear, Norm},
    plan::RowSet,
};

use super::{
    Shards, SharedWeight,
    message::{PREPARE, Words},
};

/// Kinds of pieces in messages.
pub(crate) const LINEAR: u32 = 0;
pub(crate) const GATE: u32 = 1;
pub(crate) const HEAD: u32 = 2;
pub(crate) const TOP_LOGITS: u32 = 3;

/// The pieces of a step.
#[derive(Debug)]
pub(crate) struct ShardedStep {
    /// Its number at the workers.
    pub(crate) id: u32,
    pub(crate) pieces: Vec<Piece>,
}

/// An operation with the quantizations of its input.
#[derive(Debug)]
pub(crate) struct Piece {
    /// Index of the operation.
    pub(crate) op: usize,
    /// The operation before which its input is ready.
    pub(crate) ready: usize,
    /// `f32`
    pub(crate) input: BufferId,
    /// Outputs of all, the leader's first.
    pub(crate) outputs: usize,
}

impl Shards {
    /// Has workers prepare the pieces of a plan, of whose weights they have some; none of a plan that reads no shared weight.
    pub(crate) fn prepare(
        &mut self,
        plan: &Plan,
        weights: &[Option<SharedWeight>],
    ) -> Result<Option<Arc<ShardedStep>>, OpsError> {
        let mut message = Words::new(PREPARE);
        message.push(self.next_step);
        message.push_size(plan.rows());
        message.push_size(plan.wanted());
        self.push_dropped(&mut message);
        let mut pieces = vec![];
        for op in 0..plan.ops().len() {
            pieces.extend(piece(plan, weights, op, &mut message)?);
        }
        if pieces.is_empty() {
            return Ok(None);
        }
        let head = message.finish();
        (0..self.link.workers()).try_for_each(|worker| self.link.send(worker, &[head]))?;
        let step = Arc::new(ShardedStep { id: self.next_step, pieces });
        self.next_step += 1;
        self.steps.push((step.id, Arc::downgrade(&step)));
        Ok(Some(step))
    }

    /// Workers forget the steps that are no more.
    fn push_dropped(&mut self, message: &mut Words) {
        let is_dropped = |step: &(u32, Weak<ShardedStep>)| step.1.strong_count() == 0;
        let dropped: Vec<_> = self.steps.extract_if(.., |step| is_dropped(step)).collect();
        message.push_size(dropped.len());
        for (id, _) in dropped {
            message.push(id);
        }
    }
}

/// The piece of an operation, written to the message; none of one that the leader computes alone.
fn piece(
    plan: &Plan,
    weights: &[Option<SharedWeight>],
    op: usize,
    message: &mut Words,
) -> Result<Option<Piece>, OpsError> {
    let found = match &plan.ops()[op] {
        Op::TernaryMatmul { linear, out, .. } => {
            let Some(shared) = shared(weights, linear.weight) else { return Ok(None) };
            let (ready, input) = source(plan, op, linear.x)?;
            push_head(plan, LINEAR, (input, *out), message);
            push_linear(plan, weights, op, linear, message)?;
            Piece { op, ready, input, outputs: shared.rows }
        }
        Op::Gate { gate, up, activation, out } => {
            let Some(shared) = shared(weights, gate.weight) else { return Ok(None) };
            let (sides, what) = ([source(plan, op, gate.x)?, source(plan, op, up.x)?], "one input");
            let [(ready, input), (other, same)] = sides;
            if input != same {
                return Err(plan_error(plan, op, what));
            }
            push_head(plan, GATE, (input, *out), message);
            message.push(u32::from(*activation == Activation::Silu));
            push_linear(plan, weights, op, gate, message)?;
            push_linear(plan, weights, op, up, message)?;
            Piece { op, ready: ready.min(other), input, outputs: shared.rows }
        }
        Op::Head { x, table, out } | Op::TopLogits { x, table, out } => {
            let Some(shared) = shared(weights, *table) else { return Ok(None) };
            let is_ranked = matches!(&plan.ops()[op], Op::TopLogits { .. });
            push_head(plan, if is_ranked { TOP_LOGITS } else { HEAD }, (*x, *out), message);
            message.push(shared.id);
            message.push_size(plan.buffer(*out).width);
            Piece { op, ready: op, input: *x, outputs: shared.rows }
        }
        _ => return Ok(None),
    };
    Ok(Some(found))
}

fn shared(weights: &[Option<SharedWeight>], id: WeightId) -> Option<SharedWeight> {
    *weights.get(id.0 as usize)?
}

/// The quantization that makes a layer's input, and what that reads.
fn source(plan: &Plan, op: usize, codes: BufferId) -> Result<(usize, BufferId), OpsError> {
    let (index, x, _) = quantization(plan, op, codes)?;
    Ok((index, x))
}

fn quantization(
    plan: &Plan,
    op: usize,
    codes: BufferId,
) -> Result<(usize, BufferId, Option<Norm>), OpsError> {
    let found = plan.ops()[..op].iter().enumerate().rev().find_map(|(index, op)| match op {
        Op::Quantize { x, norm, out } if *out == codes => Some((index, *x, *norm)),
        _ => None,
    });
    found.ok_or_else(|| plan_error(plan, op, "codes that it has quantized"))
}

fn plan_error(plan: &Plan, op: usize, expected: &str) -> OpsError {
    let what = format!("expected {expected}, as its weights are shared by workers");
    OpsError::Plan { op, name: plan.ops()[op].name(), what }
}

fn push_head(plan: &Plan, kind: u32, (input, out): (BufferId, BufferId), message: &mut Words) {
    message.push(kind);
    message.push_size(plan.buffer(input).width);
    message.push(u32::from(plan.buffer(out).rows == RowSet::Wanted));
}

fn push_linear(
    plan: &Plan,
    weights: &[Option<SharedWeight>],
    op: usize,
    linear: &Linear,
    message: &mut Words,
) -> Result<(), OpsError> {
    let held = |id: WeightId| {
        shared(weights, id).ok_or_else(|| plan_error(plan, op, "vectors that workers have"))
    };
    let matrix = held(linear.weight)?;
    message.push(matrix.id);
    let (_, _, norm) = quantization(plan, op, linear.x)?;
    message.push(u32::from(norm.is_some()));
    if let Some(norm) = norm {
        message.push(held(norm.gain)?.id);
        message.push(norm.eps.to_bits());
    }
    message.push(match linear.bias {
        None => 0,
        Some(bias) => 1 + u32::from(bias.before_scale),
    });
    if let Some(bias) = linear.bias {
        message.push(held(bias.weight)?.id);
    }
    Ok(())
}
