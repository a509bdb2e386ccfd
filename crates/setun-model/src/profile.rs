//! A profile of steps: times by operation, and the work that was skipped.

mod density;

use std::time::Duration;

use setun_ops::{BatchInputs, Op, Plan, WeightId, WeightSpec, backend::StepTimes, plan::RowSet};

use crate::layout::{LayerLayout, Layout, MixerLayout};
use density::Counted;
pub use density::{Density, LayerDensity};

/// Time of steps by operation, summed over all layers and over as many steps as were added.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Profile {
    /// Steps.
    pub steps: usize,
    /// Rows of these steps, a token each.
    pub rows: usize,
    /// Jobs that a team of threads was given; where it has several, each ends with a barrier.
    pub jobs: usize,
    /// The operations, in the order in which they first occur in a plan.
    pub ops: Vec<OpProfile>,
    /// How much of each layer's feed-forward part was not zero.
    pub layers: Vec<LayerDensity>,
    /// Of each row whose best logits were screened, the tokens whose exact logits were computed;
    /// those that a penalty changes not counted. It grows by an element a row.
    pub candidates: Vec<u32>,
    /// Rows whose best logits took the whole head.
    pub full_heads: usize,
    /// Of one step of a model in one piece: its operations one after the other. Sums have none.
    pub timeline: Vec<TimedOp>,
}

/// An operation of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimedOp {
    /// As [`OpProfile::name`].
    pub name: &'static str,
    /// As [`OpProfile::role`].
    pub role: Option<&'static str>,
    /// The layer that it belongs to.
    pub layer: Option<usize>,
    /// What it took.
    pub time: Duration,
}

/// Time of one kind of operation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OpProfile {
    /// Name of the operation.
    pub name: &'static str,
    /// Which layers, of a `ternary_matmul`: `qkv`, or `q`, `k` and `v`; `o`; `down`.
    pub role: Option<&'static str>,
    /// Times that it ran.
    pub calls: usize,
    /// What they took together.
    pub time: Duration,
    /// Bytes of weights that it read, each counted once a step; those that could not matter, and
    /// were not read, are left out.
    pub weight_bytes: u64,
    /// Multiply-adds with ternary matrices, those with zeros included.
    pub multiply_adds: u64,
}

impl Profile {
    /// Time of all operations.
    #[must_use]
    pub fn time(&self) -> Duration {
        self.ops.iter().map(|op| op.time).sum()
    }

    /// Adds other steps.
    pub fn add(&mut self, other: &Self) {
        self.add_from(other, 0);
    }

    /// After what was timed last, adds the step that it belongs to.
    pub(crate) fn follow(last: &mut Option<Self>, step: Option<Self>) {
        if let (Some(last), Some(step)) = (last, step) {
            let timeline = std::mem::take(&mut last.timeline);
            let head = std::mem::replace(last, step);
            last.add(&Self { steps: 0, rows: 0, ..head });
            last.timeline.extend(timeline);
        }
    }

    /// Adds other steps of a part of the model, whose first layer is given.
    pub(crate) fn add_from(&mut self, other: &Self, first_layer: usize) {
        self.steps += other.steps;
        self.rows += other.rows;
        self.jobs += other.jobs;
        for op in &other.ops {
            match self.ops.iter_mut().find(|own| (own.name, own.role) == (op.name, op.role)) {
                Some(own) => {
                    own.calls += op.calls;
                    own.time += op.time;
                    own.weight_bytes += op.weight_bytes;
                    own.multiply_adds += op.multiply_adds;
                }
                None => self.ops.push(op.clone()),
            }
        }
        density::add(&mut self.layers, &other.layers, first_layer);
        self.candidates.extend_from_slice(&other.candidates);
        self.full_heads += other.full_heads;
    }
}

/// What must be known of a plan to make a [`Profile`] of its times.
#[derive(Debug)]
pub(crate) struct Profiler {
    lines: Vec<OpProfile>, // without times
    ops: Vec<OpReads>,
    layers: usize,
    counted: Vec<Counted>,
}

/// What an op of a plan reads, and the line that it belongs to.
#[derive(Debug)]
struct OpReads {
    line: usize,
    layer: Option<usize>,
    rows: RowSet,
    bytes: usize,         // of each step that has such rows
    bytes_per_row: usize, // of tables of which a row is read for each row
    weights: usize,       // of ternary matrices
}

impl Profiler {
    /// `weight_bytes[i]` is the size of weight `i`.
    pub(crate) fn new(plan: &Plan, layout: &Layout, weight_bytes: &[usize]) -> Self {
        let (layers, counted) = (layout.layers.len(), Counted::all(plan, layout));
        let mut profiler = Self { lines: vec![], ops: vec![], layers, counted };
        let mut layer = 0;
        for op in plan.ops() {
            let line = profiler.line(op.name(), role(op, layout));
            let rows = op.accesses().1.map_or(RowSet::Batch, |out| plan.buffer(out).rows);
            let (mut bytes, mut bytes_per_row, mut ternary) = (0, 0, 0);
            for id in weights(op).into_iter().flatten() {
                let (index, is_embed) = (id.0 as usize, matches!(op, Op::Embed { .. }));
                let spec = plan.weights()[index];
                if let WeightSpec::Ternary { rows, columns, .. } = spec {
                    ternary += rows * columns;
                }
                match spec {
                    WeightSpec::Dense { rows, .. } if is_embed => {
                        bytes_per_row += weight_bytes[index] / rows.max(1);
                    }
                    WeightSpec::Rope { positions, .. } => {
                        bytes_per_row += weight_bytes[index] / positions.max(1);
                    }
                    _ => bytes += weight_bytes[index],
                }
            }
            let is_inside = layer < layers && !matches!(op, Op::Embed { .. });
            let within = is_inside.then_some(layer);
            layer += usize::from(profiler.lines[line].role == Some("down")); // the last of a layer
            profiler.ops.push(OpReads {
                line,
                layer: within,
                rows,
                bytes,
                bytes_per_row,
                weights: ternary,
            });
        }
        profiler
    }

    /// Writes the profile of one step.
    pub(crate) fn write(&self, times: StepTimes<'_>, inputs: &BatchInputs, profile: &mut Profile) {
        profile.ops.clone_from(&self.lines);
        (profile.steps, profile.rows, profile.jobs) = (1, inputs.rows(), times.jobs);
        profile.timeline.clear();
        for (op, (time, unread)) in self.ops.iter().zip(times.ops.iter().zip(times.unread)) {
            let line = &mut profile.ops[op.line];
            line.calls += 1;
            line.time += *time;
            let OpProfile { name, role, .. } = *line;
            profile.timeline.push(TimedOp { name, role, layer: op.layer, time: *time });
            let rows = match op.rows {
                RowSet::Batch => inputs.rows(),
                RowSet::Wanted => inputs.wanted.len(),
            };
            let bytes = if rows == 0 { 0 } else { op.bytes + rows * op.bytes_per_row };
            line.weight_bytes += (bytes as u64).saturating_sub(*unread);
            line.multiply_adds += (rows * op.weights) as u64;
        }
        profile.layers.clear();
        profile.layers.resize(self.layers, LayerDensity::default());
        let is_counted = !times.nonzero.is_empty();
        for counted in self.counted.iter().filter(|_| is_counted) {
            counted.add(times.nonzero, inputs.rows(), &mut profile.layers);
        }
        profile.candidates.clear();
        profile.candidates.extend(times.candidates.iter().flatten());
        profile.full_heads = times.candidates.len() - profile.candidates.len();
    }

    fn line(&mut self, name: &'static str, role: Option<&'static str>) -> usize {
        let known = self.lines.iter().position(|line| (line.name, line.role) == (name, role));
        known.unwrap_or_else(|| {
            let (time, weight_bytes, multiply_adds) = (Duration::ZERO, 0, 0);
            self.lines.push(OpProfile { name, role, calls: 0, time, weight_bytes, multiply_adds });
            self.lines.len() - 1
        })
    }
}

/// Which of the layers a product belongs to.
fn role(op: &Op, layout: &Layout) -> Option<&'static str> {
    let Op::TernaryMatmul { linear, .. } = op else { return None };
    layout.layers.iter().find_map(|layer| role_in(layer, linear.weight))
}

fn role_in(layer: &LayerLayout, weight: WeightId) -> Option<&'static str> {
    if layer.output.weight == weight {
        Some("o")
    } else if layer.down.weight == weight {
        Some("down")
    } else {
        let inputs = layer.mixer.inputs();
        let part = inputs.iter().position(|linear| linear.weight == weight)?;
        match &layer.mixer {
            MixerLayout::DeltaNet(_) => Some("qkvz"),
            MixerLayout::Attention(_) if inputs.len() == 1 => Some("qkv"),
            MixerLayout::Attention(_) => ["q", "k", "v"].get(part).copied(),
        }
    }
}

/// The weights that an op reads.
fn weights(op: &Op) -> [Option<WeightId>; 4] {
    let bias = |linear: &setun_ops::op::Linear| linear.bias.map(|bias| bias.weight);
    match op {
        Op::Embed { table, .. }
        | Op::Head { table, .. }
        | Op::TopLogits { table, .. }
        | Op::Argmax { table, .. } => [Some(*table), None, None, None],
        Op::RmsNorm { norm, .. } | Op::HeadNorm { norm, .. } => [Some(norm.gain), None, None, None],
        Op::DenseMatmul { weight, .. } => [Some(*weight), None, None, None],
        Op::Hadamard { signs, .. } => [*signs, None, None, None],
        Op::DeltaNet { weights, .. } => [
            Some(weights.conv),
            Some(weights.decay),
            Some(weights.dt_bias),
            Some(weights.norm.gain),
        ],
        Op::Quantize { norm, .. } => [norm.map(|norm| norm.gain), None, None, None],
        Op::TernaryMatmul { linear, .. } => [Some(linear.weight), bias(linear), None, None],
        Op::RopeAppend { rope, .. } => [Some(*rope), None, None, None],
        Op::Attention { .. } | Op::SigmoidGate { .. } => [None; 4],
        Op::Gate { gate, up, .. } => [Some(gate.weight), Some(up.weight), bias(gate), bias(up)],
    }
}
