//! A random checkpoint in Hugging Face's layout.

use std::{collections::BTreeMap, ops::Range};

use setun::checkpoint::{
    CheckpointError, Dtype, TensorInfo, files,
    generation::GenerationDefaults,
    write::{NewTensor, config_json, generation_config_json, layout},
};

use super::{
    content::{ANCHOR_VALUE, ANCHORS, Anchors, Content, EMBEDDING_VARIANCE},
    noise::noise,
    shape::Shape,
};

/// Standard deviation of what a layer's attention, and its feed-forward part, add to the residual
/// stream: so much more than an embedding's that a tied head does not repeat the last token.
const ADDED: f32 = 8.0;

/// Standard deviations of a gate's other inputs that the anchors together outweigh.
const CERTAIN: f32 = 5.0;

/// A random checkpoint: two small texts, and a weight file whose bytes are made when read.
#[derive(Debug)]
pub(crate) struct Synthetic {
    name: &'static str,
    config: String,
    generation: String,
    header: Vec<u8>,
    tensors: Vec<TensorInfo>,
    contents: Vec<Content>, // one a tensor
    seed: u64,
}

impl Synthetic {
    /// The checkpoint of a shape and seed. With `closed`, from 0 to 1, that share of all gates
    /// is closed, for any token; without it, half are, at random.
    ///
    /// # Errors
    ///
    /// If the shape is too large to be addressed.
    pub(crate) fn new(
        shape: &Shape,
        seed: u64,
        closed: Option<f64>,
    ) -> Result<Self, CheckpointError> {
        let mut list = List { shape, closed, tensors: vec![], contents: vec![] };
        list.all();
        let layout = layout(files::WEIGHTS, &list.tensors, &BTreeMap::new())?;
        Ok(Self {
            name: shape.name,
            config: config_json(&shape.config())?,
            generation: generation_config_json(&GenerationDefaults::default())?,
            header: layout.header,
            tensors: layout.tensors,
            contents: list.contents,
            seed,
        })
    }

    /// Name of the shape.
    pub(crate) fn name(&self) -> &'static str {
        self.name
    }

    /// A small file's bytes.
    pub(crate) fn file(&self, name: &str) -> Option<&[u8]> {
        match name {
            files::CONFIG => Some(self.config.as_bytes()),
            files::GENERATION_CONFIG => Some(self.generation.as_bytes()),
            _ => None,
        }
    }

    /// Bytes of the weight file.
    pub(crate) fn weight_file_bytes(&self) -> u64 {
        self.tensors.last().map_or(self.header.len() as u64, |tensor| tensor.range.end)
    }

    /// Appends a range of the weight file, or what there is of it.
    pub(crate) fn read_weights(&self, range: Range<u64>, out: &mut Vec<u8>) {
        let header = clip(&range, &(0..self.header.len() as u64));
        out.extend_from_slice(&self.header[header.start..header.end]);
        let first = self.tensors.partition_point(|tensor| tensor.range.end <= range.start);
        for (index, tensor) in self.tensors.iter().enumerate().skip(first) {
            if tensor.range.start >= range.end {
                break;
            }
            let wanted = clip(&range, &tensor.range);
            let written = out.len();
            out.resize(written + wanted.len(), 0);
            let key = noise(self.seed, index as u64);
            self.contents[index].fill(key, wanted.start, &mut out[written..]);
        }
    }
}

/// The part of `range` that is in `whole`, counted from the start of `whole`.
fn clip(range: &Range<u64>, whole: &Range<u64>) -> Range<usize> {
    let at = |offset: u64| {
        let offset = offset.clamp(whole.start, whole.end) - whole.start;
        usize::try_from(offset).unwrap_or(usize::MAX)
    };
    at(range.start)..at(range.end)
}

/// Collects the tensors, in the order of their use.
struct List<'a> {
    shape: &'a Shape,
    closed: Option<f64>,
    tensors: Vec<NewTensor>,
    contents: Vec<Content>,
}

impl List<'_> {
    fn all(&mut self) {
        let Shape { hidden, vocab, layers, .. } = *self.shape;
        let embedding = Content::Embedding { columns: hidden, anchored: self.closed.is_some() };
        self.push("model.embed_tokens.weight", Dtype::Bf16, &[vocab, hidden], embedding);
        for layer in 0..layers {
            self.layer(layer);
        }
        self.norm("model.norm.weight", hidden, 1.0);
    }

    fn layer(&mut self, layer: usize) {
        let Shape { hidden, ffn, kv_heads, .. } = *self.shape;
        let kv = kv_heads * self.shape.head_dim();
        let name = |part: &str| format!("model.layers.{layer}.{part}");
        let kept = self.closed.map_or(Anchors::Ignored, |_| Anchors::Kept);
        let gate = self.closed.map_or(Anchors::Ignored, weighed);
        let gain = self.closed.map_or(1.0, |_| self.anchor_gain(layer));

        self.norm(&name("input_layernorm.weight"), hidden, 1.0);
        for (part, rows) in [("q_proj", hidden), ("k_proj", kv), ("v_proj", kv)] {
            let name = name(&format!("self_attn.{part}"));
            self.linear(&name, rows, hidden, Anchors::Ignored, 1.0);
        }
        self.norm(&name("self_attn.attn_sub_norm.weight"), hidden, 1.0);
        self.linear(&name("self_attn.o_proj"), hidden, hidden, kept, ADDED);
        self.norm(&name("post_attention_layernorm.weight"), hidden, gain);
        self.linear(&name("mlp.gate_proj"), ffn, hidden, gate, 1.0);
        self.linear(&name("mlp.up_proj"), ffn, hidden, Anchors::Ignored, 1.0);
        self.norm(&name("mlp.ffn_sub_norm.weight"), ffn, 1.0);
        self.linear(&name("mlp.down_proj"), hidden, ffn, kept, ADDED);
    }

    /// The gain of the anchors before the gate, such that they outweigh the other columns,
    /// although the residual stream grows from layer to layer.
    fn anchor_gain(&self, layer: usize) -> f32 {
        let (hidden, anchors) = (to_f32(self.shape.hidden), to_f32(ANCHORS));
        let others = EMBEDDING_VARIANCE + to_f32(2 * layer + 1) * ADDED * ADDED;
        let mean_square = (anchors * ANCHOR_VALUE.powi(2) + (hidden - anchors) * others) / hidden;
        let normed = ANCHOR_VALUE / mean_square.sqrt();
        CERTAIN * deviation(self.shape.hidden) / anchors / normed
    }

    fn norm(&mut self, name: &str, width: usize, anchors: f32) {
        self.push(name, Dtype::Bf16, &[width], Content::Constant { value: 1.0, anchors });
    }

    /// A ternary matrix whose outputs have the standard deviation `output` for normed inputs.
    fn linear(&mut self, name: &str, rows: usize, columns: usize, anchors: Anchors, output: f32) {
        let codes = Content::Ternary { rows, columns, anchors };
        self.push(&format!("{name}.weight"), Dtype::U8, &[rows / 4, columns], codes);
        let value = output / deviation(columns);
        let scale = Content::Constant { value, anchors: value };
        self.push(&format!("{name}.weight_scale"), Dtype::Bf16, &[1], scale);
    }

    fn push(&mut self, name: &str, dtype: Dtype, shape: &[usize], content: Content) {
        self.tensors.push(NewTensor { name: name.into(), dtype, shape: shape.to_vec() });
        self.contents.push(content);
    }
}

/// See [`Content`]'s module.
fn weighed(closed: f64) -> Anchors {
    let code = if closed > 0.5 { 0 } else { 2 };
    Anchors::Weighed { share: (2.0 * closed - 1.0).abs(), code }
}

/// Standard deviation of a random ternary row times a normed vector.
fn deviation(columns: usize) -> f32 {
    (to_f32(columns) * 2.0 / 3.0).sqrt()
}

#[expect(clippy::cast_precision_loss, reason = "sizes of a model's layers")]
fn to_f32(size: usize) -> f32 {
    size as f32
}
