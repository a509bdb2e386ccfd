//! The pieces of a plan that workers compute with the leader.

use std::sync::{Arc, Weak};

use setun_ops::{
    BufferId, CacheSpec, Op, OpsError, Plan, WeightId, WeightSpec,
    op::{Activation, Bias, Linear, Norm},
    plan::{BufferKind, PlanBuilder, RowSet},
};

use super::{
    Shards,
    message::{Message, PREPARE, Words},
};
use crate::step::Weights;

/// Positions of a block of the cache that the plan of a worker has, and never uses.
pub(super) const BLOCK_POSITIONS: usize = 32;

/// Kinds of pieces in messages.
const LINEAR: u32 = 0;
const GATE: u32 = 1;
const HEAD: u32 = 2;
const TOP_LOGITS: u32 = 3;

/// The pieces of a step.
#[derive(Debug)]
pub(crate) struct ShardedStep {
    /// Its number at the workers.
    pub(super) id: u32,
    pub(super) pieces: Vec<Piece>,
}

/// An operation with the quantizations of its input.
#[derive(Debug)]
pub(super) struct Piece {
    /// Index of the operation.
    pub(super) op: usize,
    /// The operation before which its input is ready.
    pub(super) ready: usize,
    /// `f32`
    pub(super) input: BufferId,
    /// Outputs of all, the leader's first.
    pub(super) outputs: usize,
}

impl Shards {
    /// Has workers prepare the pieces of a plan; none of a plan that reads no shared weight.
    pub(crate) fn prepare(
        &mut self,
        plan: &Plan,
        weights: &Weights,
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
        dropped.into_iter().for_each(|(id, _)| message.push(id));
    }
}

/// The piece of an operation, written to the message; none of one that the leader computes alone.
fn piece(
    plan: &Plan,
    weights: &Weights,
    op: usize,
    message: &mut Words,
) -> Result<Option<Piece>, OpsError> {
    let found = match &plan.ops()[op] {
        Op::TernaryMatmul { linear, out, .. } => {
            let Some(shared) = weights.shared(linear.weight) else { return Ok(None) };
            let (ready, input) = source(plan, op, linear.x)?;
            push_head(plan, LINEAR, (input, *out), message);
            push_linear(plan, weights, op, linear, message)?;
            Piece { op, ready, input, outputs: shared.rows }
        }
        Op::Gate { gate, up, activation, out } => {
            let Some(shared) = weights.shared(gate.weight) else { return Ok(None) };
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
            let Some(shared) = weights.shared(*table) else { return Ok(None) };
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
    weights: &Weights,
    op: usize,
    linear: &Linear,
    message: &mut Words,
) -> Result<(), OpsError> {
    let shared = |id: WeightId| {
        weights.shared(id).ok_or_else(|| plan_error(plan, op, "vectors that workers have"))
    };
    let matrix = shared(linear.weight)?;
    message.push(matrix.id);
    let (_, _, norm) = quantization(plan, op, linear.x)?;
    message.push(u32::from(norm.is_some()));
    if let Some(norm) = norm {
        message.push(shared(norm.gain)?.id);
        message.push(norm.eps.to_bits());
    }
    message.push(match linear.bias {
        None => 0,
        Some(bias) => 1 + u32::from(bias.before_scale),
    });
    if let Some(bias) = linear.bias {
        message.push(shared(bias.weight)?.id);
    }
    Ok(())
}

/// A plan of pieces at a worker.
#[derive(Debug)]
pub(super) struct WorkerPlan {
    pub(super) plan: Plan,
    pub(super) pieces: Vec<WorkerPiece>,
}

/// A piece at a worker.
#[derive(Clone, Copy, Debug)]
pub(super) struct WorkerPiece {
    /// Its first operation, and the one after its last.
    pub(super) ops: (usize, usize),
    pub(super) input: BufferId,
    pub(super) out: BufferId,
}

/// What a worker makes plans from.
pub(super) trait WorkerWeights {
    fn specs(&self) -> Vec<WeightSpec>;

    /// The elements of a bias that belong to this worker's rows of a matrix.
    fn bias(&mut self, bias: WeightId, matrix: WeightId) -> Result<WeightId, OpsError>;
}

/// Reads a plan from a message; first, in `dropped`, the steps that are no more.
pub(super) fn worker_plan(
    message: &mut Message<'_>,
    weights: &mut impl WorkerWeights,
    mut dropped: impl FnMut(u32),
) -> Result<(u32, WorkerPlan), OpsError> {
    let (id, rows, wanted) = (message.word()?, message.size()?, message.size()?);
    for _ in 0..message.size()? {
        dropped(message.word()?);
    }
    let mut read = vec![];
    while !message.is_empty() {
        read.push(read_piece(message, weights)?);
    }
    // Biases are cut while pieces are read, so specifications are complete only now.
    let specs = weights.specs();
    let cache = CacheSpec::smallest(BLOCK_POSITIONS);
    let mut builder = PlanBuilder::new(rows, wanted, specs.clone(), cache);
    let (mut pieces, mut first) = (vec![], 0);
    for piece in read {
        let (input, out, ops) = piece.build(&mut builder, &specs);
        pieces.push(WorkerPiece { ops: (first, first + ops), input, out });
        first += ops;
    }
    Ok((id, WorkerPlan { plan: builder.finish()?, pieces }))
}

/// A piece as it was read.
struct ReadPiece {
    width: usize,
    rows: RowSet,
    kind: ReadKind,
}

enum ReadKind {
    Linear(ReadLinear),
    Gate { sides: [ReadLinear; 2], activation: Activation },
    Head { table: WeightId },
    TopLogits { table: WeightId, capacity: usize },
}

struct ReadLinear {
    weight: WeightId,
    norm: Option<Norm>,
    bias: Option<Bias>,
}

fn read_piece(
    message: &mut Message<'_>,
    weights: &mut impl WorkerWeights,
) -> Result<ReadPiece, OpsError> {
    let (kind, width) = (message.word()?, message.size()?);
    let rows = if message.word()? == 1 { RowSet::Wanted } else { RowSet::Batch };
    let kind = match kind {
        LINEAR => ReadKind::Linear(read_linear(message, weights)?),
        GATE => {
            let silu = message.word()? == 1;
            let activation = if silu { Activation::Silu } else { Activation::ReluSquared };
            let sides = [read_linear(message, weights)?, read_linear(message, weights)?];
            ReadKind::Gate { sides, activation }
        }
        kind => {
            let (table, capacity) = (WeightId(message.word()?), message.size()?);
            if kind == HEAD {
                ReadKind::Head { table }
            } else {
                ReadKind::TopLogits { table, capacity }
            }
        }
    };
    Ok(ReadPiece { width, rows, kind })
}

fn read_linear(
    message: &mut Message<'_>,
    weights: &mut impl WorkerWeights,
) -> Result<ReadLinear, OpsError> {
    let weight = WeightId(message.word()?);
    let norm = if message.word()? == 1 {
        let gain = WeightId(message.word()?);
        Some(Norm { gain, eps: f32::from_bits(message.word()?) })
    } else {
        None
    };
    let bias = match message.word()? {
        0 => None,
        kind => {
            let whole = WeightId(message.word()?);
            let bias = weights.bias(whole, weight)?;
            Some(Bias { weight: bias, before_scale: kind == 2 })
        }
    };
    Ok(ReadLinear { weight, norm, bias })
}

impl ReadPiece {
    /// Appends the operations: input, output and their number. Buffers are free for the next
    /// piece, before which the output is read.
    fn build(&self, plan: &mut PlanBuilder, specs: &[WeightSpec]) -> (BufferId, BufferId, usize) {
        let input = match self.rows {
            RowSet::Batch => plan.input(self.width),
            RowSet::Wanted => plan.wanted_input(self.width),
        };
        let mut codes = vec![];
        let mut quantized = |plan: &mut PlanBuilder, linear: &ReadLinear| {
            let out = plan.buffer(BufferKind::Quantized, self.width, self.rows);
            plan.push(Op::Quantize { x: input, norm: linear.norm, out });
            codes.push(out);
            Linear { x: out, weight: linear.weight, bias: linear.bias }
        };
        // `PlanBuilder::finish` names the op that is wrong.
        let outputs = |id: WeightId| match specs.get(id.0 as usize) {
            Some(WeightSpec::Ternary { rows, .. } | WeightSpec::Dense { rows, .. }) => *rows,
            _ => 0,
        };
        let float = |plan: &mut PlanBuilder, width| plan.buffer(BufferKind::F32, width, self.rows);
        let (out, ops) = match &self.kind {
            ReadKind::Linear(layer) => {
                let linear = quantized(plan, layer);
                let out = float(plan, outputs(layer.weight));
                plan.push(Op::TernaryMatmul { linear, residual: None, out, out_column: 0 });
                (out, 2)
            }
            ReadKind::Gate { sides: [gate_side, up_side], activation } => {
                let gate = quantized(plan, gate_side);
                let is_same = gate_side.norm == up_side.norm;
                let up = if is_same {
                    Linear { x: gate.x, weight: up_side.weight, bias: up_side.bias }
                } else {
                    quantized(plan, up_side)
                };
                let out = float(plan, outputs(gate_side.weight));
                plan.push(Op::Gate { gate, up, activation: *activation, out });
                (out, if is_same { 2 } else { 3 })
            }
            ReadKind::Head { table } => {
                let out = float(plan, outputs(*table));
                plan.push(Op::Head { x: input, table: *table, out });
                (out, 1)
            }
            ReadKind::TopLogits { table, capacity } => {
                let out = plan.buffer(BufferKind::Ranked, *capacity, self.rows);
                plan.push(Op::TopLogits { x: input, table: *table, out });
                (out, 1)
            }
        };
        codes.into_iter().chain([input, out]).for_each(|buffer| plan.release(buffer));
        (input, out, ops)
    }
}
