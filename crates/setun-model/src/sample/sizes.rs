//! Sizes of a sample's layers.

use std::collections::BTreeMap;

use setun_ops::{
    HAS_RECURRENT, WeightId, WeightSpec,
    delta_net::DeltaNetShape,
    op::{HeadShape, Norm},
};

use super::{MAX_FFN, MAX_VOCAB, POSITIONS, Size};
use crate::layout::{
    AttentionLayout, DeltaNetLayout, LayerLayout, Layout, LinearLayout, MixerLayout, Rotation,
};

/// Sizes of the layers of a sample, and the weights that get them.
pub(super) struct Sizes {
    hidden: usize,
    heads: HeadShape,
    ffn: usize,
    size: Size,
    /// Columns of a block of rotations.
    block: usize,
    specs: Vec<WeightSpec>,
    /// Signs of inputs by their width: those of the model, which several widths of a sample may share, and its own.
    signs: BTreeMap<(WeightId, usize), WeightId>,
}

impl Sizes {
    pub(super) fn new(layout: &Layout, size: Size) -> Self {
        let rotations = layout.layers.iter().flat_map(LayerLayout::linears);
        let blocks = rotations.filter_map(|linear| linear.rotation).map(|rotation| rotation.block);
        let block = if HAS_RECURRENT { blocks.max().unwrap_or(1) } else { 1 };
        let heads = match size {
            Size::Small => one_kv_head(layout.heads, block),
            Size::Layer => layout.heads,
        };
        let hidden = match layout.specs[layout.embedding.0 as usize] {
            WeightSpec::Dense { columns, .. } => columns,
            _ => 1,
        };
        let ffn = layout.layers.first().map_or(0, |layer| layer.gate.outputs);
        let ffn = match size {
            Size::Small => ffn.min(MAX_FFN.next_multiple_of(block)),
            Size::Layer => ffn,
        };
        let (specs, signs) = (vec![], BTreeMap::new());
        Self { hidden, heads, ffn, size, block, specs, signs }
    }

    /// Gives a sample's weights their sizes; its vocabulary.
    pub(super) fn set(mut self, layout: &Layout, small: &mut Layout) -> usize {
        self.specs = std::mem::take(&mut small.specs);
        let vocab = match layout.specs[layout.embedding.0 as usize] {
            WeightSpec::Dense { rows, .. } => rows.min(MAX_VOCAB),
            _ => 1,
        };
        let table = WeightSpec::Dense { rows: vocab, columns: self.hidden };
        self.spec(layout.embedding, table);
        self.spec(layout.head, table);
        let head_dim = match layout.specs[layout.rope.0 as usize] {
            WeightSpec::Rope { head_dim, .. } => head_dim,
            _ => layout.heads.head_dim,
        };
        self.spec(layout.rope, WeightSpec::Rope { positions: POSITIONS, head_dim });
        self.vector(layout.final_norm.gain, self.hidden);
        for rotation in [&mut small.embedding_rotation, &mut small.head_rotation] {
            self.rotation(rotation, self.hidden);
        }
        for layer in &mut small.layers {
            self.layer(layout, layer);
        }
        small.heads = self.heads;
        small.specs = self.specs;
        vocab
    }

    fn layer(&mut self, layout: &Layout, layer: &mut LayerLayout) {
        let (hidden, ffn) = (self.hidden, self.ffn);
        self.norm(Some(layer.input_norm), hidden);
        self.norm(Some(layer.post_attention_norm), hidden);
        self.norm(layer.ffn_sub_norm, ffn);
        let mixed = match &mut layer.mixer {
            MixerLayout::Attention(attention) => self.attention(layout, attention),
            MixerLayout::DeltaNet(net) if HAS_RECURRENT => self.delta_net(layout, net),
            MixerLayout::DeltaNet(_) => hidden, // of a model that this build refuses
        };
        self.linear(layout, &mut layer.output, hidden, mixed);
        self.linear(layout, &mut layer.gate, ffn, hidden);
        self.linear(layout, &mut layer.up, ffn, hidden);
        self.linear(layout, &mut layer.down, hidden, ffn);
    }

    /// The width of what it gives.
    fn attention(&mut self, layout: &Layout, attention: &mut AttentionLayout) -> usize {
        let heads = self.heads;
        self.norm(attention.head_norms.map(|norms| norms.query), heads.head_dim);
        self.norm(attention.head_norms.map(|norms| norms.key), heads.head_dim);
        self.norm(attention.sub_norm, heads.query_width());
        let ends = [layout.heads, heads].map(|heads| {
            let (queries, kv) = (heads.query_width(), heads.kv_width());
            [0, queries, queries + kv, queries + 2 * kv, 2 * (queries + kv)]
        });
        for linear in &mut attention.qkv {
            self.run(layout, linear, &ends);
        }
        heads.query_width()
    }

    /// The width of what it gives.
    fn delta_net(&mut self, layout: &Layout, net: &mut DeltaNetLayout) -> usize {
        let shape = match self.size {
            Size::Small => one_key_head(net.shape, self.block),
            Size::Layer => net.shape,
        };
        let ends = [net.shape, shape].map(|shape| {
            let (keys, values) = (shape.key_width(), shape.channels() + shape.value_width());
            [0, keys, 2 * keys, shape.channels(), values, values + 2 * shape.value_heads]
        });
        for linear in &mut net.input {
            self.run(layout, linear, &ends);
        }
        let is_table =
            |id: &WeightId| matches!(layout.specs[id.0 as usize], WeightSpec::Dense { .. });
        match net.gates.dense.filter(|[first, _]| is_table(first)) {
            Some(tables) => {
                let table = WeightSpec::Dense { rows: shape.value_heads, columns: self.hidden };
                for id in tables {
                    self.spec(id, table);
                }
                net.gates.ternary.column = ends[1][4];
            }
            None => self.run(layout, &mut net.gates.ternary, &ends),
        }
        self.vector(net.weights.conv, shape.kernel * shape.channels());
        self.vector(net.weights.decay, shape.value_heads);
        self.vector(net.weights.dt_bias, shape.value_heads);
        self.norm(Some(net.weights.norm), shape.value_dim);
        net.shape = shape;
        shape.value_width()
    }

    /// A matrix of the normed input, whose outputs are a run of columns that end as some parts of a row do.
    fn run<const N: usize>(
        &mut self,
        layout: &Layout,
        linear: &mut LinearLayout,
        [model, sample]: &[[usize; N]; 2],
    ) {
        let at = |column| {
            let index = model.iter().position(|&end| end == column);
            index.map_or(column, |index| sample[index])
        };
        let (first, end) = (at(linear.column), at(linear.column + linear.outputs));
        linear.column = first;
        self.linear(layout, linear, end.saturating_sub(first), self.hidden);
    }

    fn linear(
        &mut self,
        layout: &Layout,
        linear: &mut LinearLayout,
        outputs: usize,
        columns: usize,
    ) {
        linear.outputs = outputs;
        let old = layout.specs[linear.weight.0 as usize];
        let grouped = matches!(old, WeightSpec::Ternary { grouped: true, .. });
        self.spec(linear.weight, WeightSpec::Ternary { rows: outputs, columns, grouped });
        if let Some(bias) = linear.bias {
            self.vector(bias.weight, outputs);
        }
        self.norm(linear.norm, columns);
        self.rotation(&mut linear.rotation, columns);
    }

    fn rotation(&mut self, rotation: &mut Option<Rotation>, width: usize) {
        let Some(Rotation { signs: Some(signs), .. }) = rotation else { return };
        if !HAS_RECURRENT {
            return;
        }
        let key = (*signs, width);
        if let Some(own) = self.signs.get(&key) {
            *signs = *own;
            return;
        }
        let own = WeightId(setun_ops::numeric::to_u32(self.specs.len()));
        self.specs.push(WeightSpec::Vector { len: width });
        self.signs.insert(key, own);
        *signs = own;
    }

    fn norm(&mut self, norm: Option<Norm>, len: usize) {
        if let Some(norm) = norm {
            self.vector(norm.gain, len);
        }
    }

    fn vector(&mut self, id: WeightId, len: usize) {
        self.spec(id, WeightSpec::Vector { len });
    }

    fn spec(&mut self, id: WeightId, spec: WeightSpec) {
        self.specs[id.0 as usize] = spec;
    }
}

/// The queries of one head of keys, more where a rotation takes more columns.
fn one_kv_head(HeadShape { heads, kv_heads, head_dim }: HeadShape, block: usize) -> HeadShape {
    let fits = |heads: &usize| (heads * head_dim).is_multiple_of(block);
    let heads = (heads / kv_heads..=heads).find(fits).unwrap_or(heads);
    HeadShape { heads, kv_heads: 1, head_dim }
}

/// The values of one head of keys, more where a rotation takes more columns.
fn one_key_head(shape: DeltaNetShape, block: usize) -> DeltaNetShape {
    let fits = |heads: &usize| (heads * shape.value_dim).is_multiple_of(block);
    let value_heads = (shape.group()..=shape.value_heads).find(fits).unwrap_or(shape.value_heads);
    DeltaNetShape { key_heads: 1, value_heads, ..shape }
}
