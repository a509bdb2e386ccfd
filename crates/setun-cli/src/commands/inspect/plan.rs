//! Operations of a step of one token, with their buffers and weights.

use serde::Serialize;
use setun::{
    checkpoint::ModelConfig,
    forward::{
        BLOCK_POSITIONS, Layout, cache_spec,
        plan::{HeadOutput, model_plan},
    },
    ops::{
        BufferId, CacheElement, Op, Plan, WeightId,
        op::{Linear, Norm},
        plan::BufferKind,
    },
};

use crate::{error::CliError, output::table};

/// The operations of a step of one token.
#[derive(Debug, Serialize)]
pub(super) struct PlanReport {
    ops: Vec<OpReport>,
    buffers: Vec<BufferReport>,
    weights: Vec<String>,
}

/// An operation, with its buffers and weights by number.
#[derive(Debug, Serialize)]
struct OpReport {
    op: &'static str,
    reads: Vec<u32>,
    weights: Vec<u32>,
    writes: u32,
}

#[derive(Debug, Serialize)]
struct BufferReport {
    kind: &'static str,
    /// Columns that share a scale, where not all of a row do.
    #[serde(skip_serializing_if = "Option::is_none")]
    group: Option<usize>,
    rows: usize,
    width: usize,
}

/// Makes the plan of one token and describes it.
pub(super) fn describe(layout: &Layout, config: &ModelConfig) -> Result<PlanReport, CliError> {
    let blocks = (BLOCK_POSITIONS, CacheElement::F16);
    let cache = cache_spec(config, 0..config.layers.len(), blocks, 0);
    let plan = model_plan(layout, config.activation, cache, (1, 1), HeadOutput::Logits, false)
        .map_err(setun::forward::ModelError::from)?
        .plan;
    Ok(PlanReport {
        ops: plan.ops().iter().map(OpReport::of).collect(),
        buffers: buffers(&plan),
        weights: plan.weights().iter().map(ToString::to_string).collect(),
    })
}

fn buffers(plan: &Plan) -> Vec<BufferReport> {
    let report = |(id, spec): (u32, &setun::ops::plan::BufferSpec)| BufferReport {
        kind: match spec.kind {
            BufferKind::F32 => "f32",
            BufferKind::Quantized { .. } => "int8",
            BufferKind::Ranked => "ranked",
            BufferKind::Tokens => "tokens",
        },
        group: spec.kind.group(),
        rows: plan.buffer_rows(BufferId(id)),
        width: spec.width,
    };
    (0..).zip(plan.buffers()).map(report).collect()
}

impl OpReport {
    fn of(op: &Op) -> Self {
        let linear = |linear: &Linear| {
            [Some(linear.weight), linear.bias.map(|bias| bias.weight)].into_iter().flatten()
        };
        let gain = |norm: &Norm| norm.gain;
        let (reads, weights, writes): (Vec<BufferId>, Vec<WeightId>, BufferId) = match op {
            Op::Embed { table, out } => (vec![], vec![*table], *out),
            Op::RmsNorm { x, norm, out } => (vec![*x], vec![gain(norm)], *out),
            Op::Quantize { x, norm, out } => (vec![*x], norm.iter().map(gain).collect(), *out),
            Op::TernaryMatmul { linear: layer, residual, out, .. } => {
                ([layer.x].into_iter().chain(*residual).collect(), linear(layer).collect(), *out)
            }
            Op::HeadNorm { x, norm, .. } => (vec![*x], vec![gain(norm)], *x),
            Op::RopeAppend { qkv, rope, .. } => (vec![*qkv], vec![*rope], *qkv),
            Op::Attention { qkv, out, .. } => (vec![*qkv], vec![], *out),
            Op::SigmoidGate { x, gate, .. } => (vec![*x, *gate], vec![], *x),
            Op::DeltaNet { x, weights, out, .. } => {
                let of_net = [weights.conv, weights.decay, weights.dt_bias, weights.norm.gain];
                (vec![*x], of_net.to_vec(), *out)
            }
            Op::DenseMatmul { x, weight, out, .. } => (vec![*x], vec![*weight], *out),
            Op::Hadamard { x, signs, .. } => (vec![*x], signs.iter().copied().collect(), *x),
            Op::Gate { gate, up, out, .. } => {
                let inputs = if gate.x == up.x { vec![gate.x] } else { vec![gate.x, up.x] };
                (inputs, linear(gate).chain(linear(up)).collect(), *out)
            }
            Op::Head { x, table, out }
            | Op::TopLogits { x, table, out }
            | Op::Argmax { x, table, out, .. } => (vec![*x], vec![*table], *out),
        };
        Self {
            op: op.name(),
            reads: reads.iter().map(|id| id.0).collect(),
            weights: weights.iter().map(|id| id.0).collect(),
            writes: writes.0,
        }
    }
}

impl PlanReport {
    /// For people.
    pub(super) fn text(&self) -> String {
        let buffer = |id: &u32| match self.buffers.get(*id as usize) {
            Some(BufferReport { kind, group, rows, width }) => {
                let by = group.map_or(String::new(), |columns| format!(" by {columns}"));
                format!("b{id} {kind}{by} [{rows}, {width}]")
            }
            None => format!("b{id}"),
        };
        let weight = |id: &u32| match self.weights.get(*id as usize) {
            Some(weight) => format!("w{id} {weight}"),
            None => format!("w{id}"),
        };
        let row = |(index, op): (usize, &OpReport)| {
            let inputs = op.reads.iter().map(buffer).chain(op.weights.iter().map(weight));
            let inputs = inputs.collect::<Vec<_>>().join(", ");
            vec![index.to_string(), op.op.to_owned(), buffer(&op.writes), format!("<- {inputs}")]
        };
        table(&self.ops.iter().enumerate().map(row).collect::<Vec<_>>())
    }
}
