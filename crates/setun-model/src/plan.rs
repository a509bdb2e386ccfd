//! A [`Layout`] as a [`Plan`]: the operations of one step, in order.

mod delta_net;

use setun_ops::{
    BufferId, CacheSpec, HAS_RECURRENT, Op, OpsError, Plan,
    op::{Activation, ArgmaxCapacity, HeadShape, Linear, Norm},
    plan::{BufferKind, PlanBuilder, RowSet},
};

use crate::{
    layer_range::LayerRange,
    layout::{
        AttentionLayout, HeadNorms, LayerLayout, Layout, LinearLayout, MixerLayout, Rotation,
    },
};

/// A plan, and where in it to find what.
#[derive(Clone, Debug)]
pub struct ModelPlan {
    /// The plan.
    pub plan: Plan,
    /// Hidden states that the host writes, `[rows, hidden]`, where the plan does not begin with
    /// tokens.
    pub input: Option<BufferId>,
    /// The outputs of the requested rows: logits `[wanted, vocab]`, ranked tokens
    /// `[wanted, capacity]`, or chosen tokens `[wanted, 1]`; or the hidden states of all rows,
    /// `[rows, hidden]`.
    pub output: BufferId,
    /// The requested rows as they enter the head, `[wanted, hidden]`, where the plan norms them.
    pub normed: Option<BufferId>,
    /// What else can be read after a step, where it was requested.
    pub taps: Taps,
}

/// What the end of a plan computes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum HeadOutput {
    /// All logits of the requested rows.
    #[default]
    Logits,
    /// The best tokens of the requested rows and the touched ones.
    TopLogits {
        /// Most tokens of a row.
        capacity: usize,
    },
    /// The head alone: all logits of rows that the host writes, normed.
    Alone,
    /// No head: the hidden states of all rows, for the layers of another plan.
    Hidden,
    /// No head: the hidden states of the requested rows, after the last norm.
    States,
    /// The greedy tokens.
    Argmax {
        /// What requests may hold.
        room: ArgmaxCapacity,
    },
}

/// Buffers between the operations, for tests against reference outputs.
#[derive(Clone, Debug, Default)]
pub struct Taps {
    /// Residual stream: after the embedding, then after each layer, `[rows, hidden]`.
    pub hidden: Vec<BufferId>,
    /// The requested rows after the last norm, `[wanted, hidden]`.
    pub normed: Option<BufferId>,
    /// The int8 codes that enter each linear layer, by its name, `[rows, columns]`.
    pub codes: Vec<(String, BufferId)>,
}

/// Builds the plan of a model for at most `rows` rows, `wanted` of them with logits.
///
/// With `keep` no buffer is used twice, and [`Taps`] names them.
///
/// # Errors
///
/// If the layout is not consistent; one that was built from a checked checkpoint is.
pub fn model_plan(
    layout: &Layout,
    activation: Activation,
    cache: CacheSpec,
    rows: (usize, usize),
    head: HeadOutput,
    keep: bool,
) -> Result<ModelPlan, OpsError> {
    let whole = LayerRange::whole(layout.layers.len());
    part_plan(layout, whole, activation, cache, rows, head, keep)
}

/// Builds the plan of a part of a model, as [`model_plan`] does. The layout and the cache are
/// those of the part.
pub(crate) fn part_plan(
    layout: &Layout,
    part: LayerRange,
    activation: Activation,
    cache: CacheSpec,
    (rows, wanted): (usize, usize),
    head: HeadOutput,
    keep: bool,
) -> Result<ModelPlan, OpsError> {
    let mut plan = PlanBuilder::new(rows, wanted, layout.specs.clone(), cache);
    if keep {
        plan = plan.keep_buffers();
    }
    let (attending, recurrent, taps) = (0, 0, Taps::default());
    let mut steps = Steps { plan, layout, activation, keep, attending, recurrent, taps };
    let is_alone = head == HeadOutput::Alone;
    let input = (is_alone || !part.embeds()).then(|| steps.input());
    let mut hidden = input.unwrap_or_else(|| steps.embed());
    let layers = if is_alone { &[] } else { &layout.layers[..] };
    for layer in layers {
        hidden = match &layer.mixer {
            MixerLayout::DeltaNet(_) if !HAS_RECURRENT => return Err(OpsError::NoStates),
            MixerLayout::Attention(attention) => steps.attention(layer, attention, hidden),
            MixerLayout::DeltaNet(net) => steps.delta_net(layer, net, hidden),
        };
        hidden = steps.feed_forward(layer, hidden);
        steps.taps.hidden.push(hidden);
    }
    let output = steps.end(hidden, head);
    let normed = steps.taps.normed;
    let taps = if keep { steps.taps } else { Taps::default() };
    Ok(ModelPlan { plan: steps.plan.finish()?, input, output, normed, taps })
}

struct Steps<'a> {
    plan: PlanBuilder,
    layout: &'a Layout,
    activation: Activation,
    keep: bool,
    attending: usize, // layers that attend so far
    recurrent: usize, // layers with a recurrent state so far
    taps: Taps,
}

impl Steps<'_> {
    fn embed(&mut self) -> BufferId {
        let out = self.float(self.hidden_size());
        self.plan.push(Op::Embed { table: self.layout.embedding, out });
        self.rotate(out, self.layout.embedding_rotation, true);
        self.taps.hidden.push(out);
        out
    }

    fn input(&mut self) -> BufferId {
        let input = self.plan.input(self.hidden_size());
        self.taps.hidden.push(input);
        input
    }

    fn attention(
        &mut self,
        layer: &LayerLayout,
        attention: &AttentionLayout,
        hidden: BufferId,
    ) -> BufferId {
        let (shape, index) = (self.layout.heads, self.attending);
        self.attending += 1;
        let gates = if self.layout.attention_gate { shape.query_width() } else { 0 };
        let qkv = self.float(shape.qkv_width() + gates);
        self.linears(hidden, Some(layer.input_norm), &attention.qkv, |steps, linear, layout| {
            let (residual, out_column) = (None, layout.column);
            steps.plan.push(Op::TernaryMatmul { linear, residual, out: qkv, out_column });
        });
        if let Some(HeadNorms { query, key }) = attention.head_norms {
            let HeadShape { heads, kv_heads, .. } = shape;
            let column = shape.query_width();
            self.plan.push(Op::HeadNorm { x: qkv, column: 0, heads, norm: query });
            self.plan.push(Op::HeadNorm { x: qkv, column, heads: kv_heads, norm: key });
        }
        let rope = self.layout.rope;
        self.plan.push(Op::RopeAppend { qkv, shape, rope, layer: index });
        let out = self.float(shape.query_width());
        self.plan.push(Op::Attention { qkv, shape, layer: index, out });
        if self.layout.attention_gate {
            self.plan.push(Op::SigmoidGate { x: out, gate: qkv, column: shape.qkv_width() });
        }
        self.plan.release(qkv);
        self.add_to_residual(hidden, out, attention.sub_norm, &layer.output)
    }

    fn feed_forward(&mut self, layer: &LayerLayout, hidden: BufferId) -> BufferId {
        let activation = self.activation;
        let out = self.float(layer.gate.outputs);
        let sides = [layer.gate.clone(), layer.up.clone()];
        let is_shared = layer.gate.norm.is_none() && layer.gate.rotation == layer.up.rotation;
        if is_shared {
            // Both sides take the same input, so it is quantized once.
            let norm = layer.post_attention_norm;
            let rotated = layer.gate.rotation.map(|_| self.norm(hidden, norm));
            let own = if rotated.is_some() { None } else { Some(norm) };
            self.rotate(rotated.unwrap_or(hidden), layer.gate.rotation, false);
            let x = self.quantize(rotated.unwrap_or(hidden), own, &sides);
            let [gate, up] = sides.map(|side| linear(&side, x));
            self.plan.push(Op::Gate { gate, up, activation, out });
            [Some(x), rotated].into_iter().flatten().for_each(|buffer| self.plan.release(buffer));
        } else {
            let normed = self.norm(hidden, layer.post_attention_norm);
            // One that is not rotated comes first, as rotation is in place.
            let order = if layer.gate.rotation.is_none() { [0, 1] } else { [1, 0] };
            let mut inputs = [normed; 2];
            for side in order {
                let layer = &sides[side];
                self.rotate(normed, layer.rotation, false);
                inputs[side] = self.quantize(normed, layer.norm, std::slice::from_ref(layer));
            }
            let [gate, up] = [0, 1].map(|side| linear(&sides[side], inputs[side]));
            self.plan.push(Op::Gate { gate, up, activation, out });
            for buffer in [normed, gate.x, up.x] {
                self.plan.release(buffer);
            }
        }
        self.add_to_residual(hidden, out, layer.ffn_sub_norm, &layer.down)
    }

    /// `hidden + layer(norm(x))`; releases `x`.
    fn add_to_residual(
        &mut self,
        hidden: BufferId,
        x: BufferId,
        norm: Option<Norm>,
        layer: &LinearLayout,
    ) -> BufferId {
        let out = if self.keep { self.float(self.hidden_size()) } else { hidden };
        self.linears(x, norm, std::slice::from_ref(layer), |steps, linear, _| {
            let residual = Some(hidden);
            steps.plan.push(Op::TernaryMatmul { linear, residual, out, out_column: 0 });
        });
        self.plan.release(x);
        out
    }

    /// Quantizes `norm(x)` for linear layers that share it, through a norm of their own where
    /// they have one.
    fn linears(
        &mut self,
        x: BufferId,
        norm: Option<Norm>,
        layers: &[LinearLayout],
        mut push: impl FnMut(&mut Self, Linear, &LinearLayout),
    ) {
        let is_rotated = layers.iter().any(|layer| layer.rotation.is_some());
        let normed = match norm {
            Some(norm) if layers[0].norm.is_some() || is_rotated => Some(self.norm(x, norm)),
            _ => None,
        };
        let x_normed = normed.unwrap_or(x);
        let mut rotated = None;
        let (plain, turned): (Vec<_>, Vec<_>) =
            layers.iter().partition(|layer| layer.rotation.is_none());
        for layer in plain.into_iter().chain(turned) {
            let own = if layer.norm.is_some() || normed.is_some() { layer.norm } else { norm };
            // Rotation is in place, so those without one come first.
            if layer.rotation != rotated {
                rotated = layer.rotation;
                self.rotate(x_normed, rotated, false);
            }
            let codes = self.quantize(x_normed, own, std::slice::from_ref(layer));
            push(self, linear(layer, codes), layer);
            self.plan.release(codes);
        }
        if let Some(normed) = normed {
            self.plan.release(normed);
        }
    }

    fn end(&mut self, hidden: BufferId, output: HeadOutput) -> BufferId {
        let table = self.layout.head;
        match output {
            HeadOutput::Logits => {
                let x = self.head_input(hidden);
                self.head(x, RowSet::Wanted)
            }
            HeadOutput::Alone => self.head(hidden, RowSet::Batch),
            HeadOutput::TopLogits { capacity } => {
                let x = self.head_input(hidden);
                let out = self.plan.buffer(BufferKind::Ranked, capacity, RowSet::Wanted);
                self.plan.push(Op::TopLogits { x, table, out });
                out
            }
            HeadOutput::Hidden => hidden,
            HeadOutput::States => self.last_norm(hidden),
            HeadOutput::Argmax { room } => {
                let x = self.head_input(hidden);
                let out = self.plan.buffer(BufferKind::Tokens, 1, RowSet::Wanted);
                self.plan.push(Op::Argmax { x, table, room, out });
                out
            }
        }
    }

    fn head(&mut self, x: BufferId, rows: RowSet) -> BufferId {
        let out = self.plan.buffer(BufferKind::F32, self.dense_rows(), rows);
        self.plan.push(Op::Head { x, table: self.layout.head, out });
        out
    }

    /// The requested rows as they enter the head.
    fn head_input(&mut self, hidden: BufferId) -> BufferId {
        let out = self.last_norm(hidden);
        self.rotate(out, self.layout.head_rotation, false);
        out
    }

    fn rotate(&mut self, x: BufferId, rotation: Option<Rotation>, is_inverse: bool) {
        if let Some(Rotation { signs, block }) = rotation.filter(|_| HAS_RECURRENT) {
            self.plan.push(Op::Hadamard { x, signs, block, is_inverse });
        }
    }

    fn last_norm(&mut self, hidden: BufferId) -> BufferId {
        let out = self.plan.buffer(BufferKind::F32, self.hidden_size(), RowSet::Wanted);
        self.plan.push(Op::RmsNorm { x: hidden, norm: self.layout.final_norm, out });
        self.taps.normed = Some(out);
        out
    }

    fn norm(&mut self, x: BufferId, norm: Norm) -> BufferId {
        let out = self.float(self.vector_len(norm));
        self.plan.push(Op::RmsNorm { x, norm, out });
        out
    }

    fn quantize(&mut self, x: BufferId, norm: Option<Norm>, layers: &[LinearLayout]) -> BufferId {
        let columns = self.columns(&layers[0]);
        let kind = BufferKind::Quantized { group: self.layout.activation_group };
        let out = self.plan.buffer(kind, columns, RowSet::Batch);
        self.plan.push(Op::Quantize { x, norm, out });
        let names = layers.iter().flat_map(|layer| &layer.names);
        self.taps.codes.extend(names.map(|name| (name.clone(), out)));
        out
    }

    fn float(&mut self, width: usize) -> BufferId {
        self.plan.buffer(BufferKind::F32, width, RowSet::Batch)
    }

    fn hidden_size(&self) -> usize {
        let first = self.layout.layers.first().map(|layer| layer.input_norm);
        self.vector_len(first.unwrap_or(self.layout.final_norm))
    }

    fn vector_len(&self, norm: Norm) -> usize {
        match self.layout.specs[norm.gain.0 as usize] {
            setun_ops::WeightSpec::Vector { len } => len,
            _ => 0, // `PlanBuilder::finish` names the op that is wrong
        }
    }

    fn columns(&self, layer: &LinearLayout) -> usize {
        match self.layout.specs[layer.weight.0 as usize] {
            setun_ops::WeightSpec::Ternary { columns, .. } => columns,
            _ => 0,
        }
    }

    fn dense_rows(&self) -> usize {
        match self.layout.specs[self.layout.head.0 as usize] {
            setun_ops::WeightSpec::Dense { rows, .. } => rows,
            _ => 0,
        }
    }
}

fn linear(layer: &LinearLayout, x: BufferId) -> Linear {
    Linear { x, weight: layer.weight, bias: layer.bias }
}
