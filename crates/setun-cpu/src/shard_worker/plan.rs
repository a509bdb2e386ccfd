//! The plan of a worker: pieces as they are read from a message.

use setun_ops::{
    BufferId, CacheSpec, Op, OpsError, Plan, WeightId, WeightSpec,
    op::{Activation, Bias, Linear, Norm},
    plan::{BufferKind, PlanBuilder, RowSet},
};

use crate::shards::{
    message::Message,
    pieces::{GATE, HEAD, LINEAR},
};

/// Positions of a block of the cache that a worker's plan has, and never uses.
pub(super) const BLOCK_POSITIONS: usize = 32;

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
