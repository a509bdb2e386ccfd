//! A random checkpoint in Hugging Face's layout.

mod hybrid;

use std::{collections::BTreeMap, ops::Range};

use setun::{
    checkpoint::{
        CheckpointError, Dtype, TensorInfo,
        config::{LinearClass, Mixer, ModelConfig, QuantizationMode},
        files,
        generation::GenerationDefaults,
        write::{NewTensor, config_json, generation_config_json, layout},
    },
    forward::families::{BITNET, BITNET_1BITLLM, Family, LLAMA, QWEN3, QWEN3_5},
};

use super::{
    content::{ANCHOR_VALUE, ANCHORS, Anchors, Content, EMBEDDING_VARIANCE, MEAN_STEPS},
    noise::noise,
    original::{FIELDS, Original, ROTATION},
    shape::Shape,
};
use crate::error::CliError;

/// Standard deviation of what a layer's attention, and its feed-forward part, add to the residual
/// stream: so much more than an embedding's that a tied head does not repeat the last token.
const ADDED: f32 = 8.0;

/// Variance of a code that is −1, 0 or +1 equally often.
const TERNARY_VARIANCE: f32 = 2.0 / 3.0;

/// Standard deviations of a gate's other inputs that the anchors together outweigh.
const CERTAIN: f32 = 5.0;

/// A random checkpoint: small files, and a weight file whose bytes are made when read.
#[derive(Debug)]
pub(crate) struct Synthetic {
    name: String,
    files: BTreeMap<String, Vec<u8>>,
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
    /// If the shape is too large to be addressed, or has no gates that are closed by design.
    pub(crate) fn new(shape: &Shape, seed: u64, closed: Option<f64>) -> Result<Self, CliError> {
        if closed.is_some() && !shape.has_closed_gates() {
            let reason =
                format!("--closed: the gates of {} are SiLU, which closes none", shape.name);
            return Err(CliError::Usage(reason));
        }
        let config = shape.config();
        let generation = generation_config_json(&GenerationDefaults::default())?;
        let files = [
            (files::CONFIG.to_owned(), config_json(&config)?.into_bytes()),
            (files::GENERATION_CONFIG.to_owned(), generation.into_bytes()),
        ];
        let list = List::new(&config, shape.dtype(), closed);
        Ok(Self::build(list, shape.name.to_owned(), files.into(), seed)?)
    }

    /// A stand-in of a model: its small files, and random weights of its configuration.
    ///
    /// # Errors
    ///
    /// If the configuration is too large to be addressed.
    pub(crate) fn like(original: Original, seed: u64) -> Result<Self, CheckpointError> {
        let Original { name, config, dtype, files } = original;
        let has_signs = files.contains_key(ROTATION);
        let list = List { has_signs, ..List::new(&config, dtype, None) };
        Self::build(list, name, files, seed)
    }

    fn build(
        mut list: List<'_>,
        name: String,
        files: BTreeMap<String, Vec<u8>>,
        seed: u64,
    ) -> Result<Self, CheckpointError> {
        list.all();
        let layout = layout(files::WEIGHTS, &list.tensors, &BTreeMap::new())?;
        let List { contents, .. } = list;
        Ok(Self { name, files, header: layout.header, tensors: layout.tensors, contents, seed })
    }

    /// Name of the shape, or of the model that it stands for.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Whether it is in MLX's layout.
    pub(crate) fn is_mlx(&self) -> bool {
        self.contents.contains(&Content::Codes)
    }

    /// The small files.
    pub(crate) fn files(&self) -> &BTreeMap<String, Vec<u8>> {
        &self.files
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
            let content = &self.contents[index];
            let key = noise(self.seed, (index - content.back()) as u64);
            content.fill(key, tensor.dtype, wanted.start, &mut out[written..]);
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
    config: &'a ModelConfig,
    family: &'static Family,
    /// Type of all but packed codes.
    dtype: Dtype,
    closed: Option<f64>,
    /// Whether each rotated matrix gets a tensor `.signs`, as in MLX packs.
    has_signs: bool,
    tensors: Vec<NewTensor>,
    contents: Vec<Content>,
}

impl<'a> List<'a> {
    fn new(config: &'a ModelConfig, dtype: Dtype, closed: Option<f64>) -> Self {
        let family = family(&config.architecture);
        let (tensors, contents) = (vec![], vec![]);
        Self { config, family, dtype, closed, has_signs: false, tensors, contents }
    }

    fn all(&mut self) {
        let ModelConfig { hidden_size, tied_head, ref layers, .. } = *self.config;
        self.table(self.family.embedding);
        for layer in 0..layers.len() {
            self.layer(layer);
        }
        self.norm(self.family.final_norm, hidden_size, 1.0);
        if !tied_head {
            self.table(self.family.head);
        }
    }

    /// An embedding, or a head by itself.
    fn table(&mut self, name: &str) {
        let ModelConfig { hidden_size, vocab_size, .. } = *self.config;
        if let QuantizationMode::Affine { group } = self.config.quantization.mode {
            let scale = (EMBEDDING_VARIANCE * TERNARY_VARIANCE.recip()).sqrt();
            let name = name.strip_suffix(self.family.weight).unwrap_or(name);
            self.affine(name, (vocab_size, hidden_size), group, scale);
            return;
        }
        let anchored = self.closed.is_some();
        let content = Content::Embedding { columns: hidden_size, anchored };
        self.push(name, self.dtype, &[vocab_size, hidden_size], content);
    }

    fn layer(&mut self, layer: usize) {
        let (config, family) = (self.config, self.family);
        let (hidden, ffn) = (config.hidden_size, config.ffn_size);
        let name = |pattern: &str| pattern.replace("{}", &layer.to_string());
        let kept = self.closed.map_or(Anchors::Ignored, |_| Anchors::Kept);
        let gate = self.closed.map_or(Anchors::Ignored, weighed);
        let gain = self.closed.map_or(1.0, |_| self.anchor_gain(layer));

        self.norm(&name(family.input_norm), hidden, 1.0);
        match config.layers[layer] {
            Mixer::Attention => self.attention(layer, kept),
            Mixer::DeltaNet(shape) => self.delta_net(layer, shape),
        }
        self.norm(&name(family.post_attention_norm), hidden, gain);
        self.linear(&name(family.gate), (ffn, hidden), config.mlp_bias, gate, 1.0);
        self.linear(&name(family.up), (ffn, hidden), config.mlp_bias, Anchors::Ignored, 1.0);
        if config.sub_norms {
            self.norm(&name(family.ffn_sub_norm), ffn, 1.0);
        }
        self.linear(&name(family.down), (hidden, ffn), config.mlp_bias, kept, ADDED);
    }

    fn attention(&mut self, layer: usize, kept: Anchors) {
        let (config, family) = (self.config, self.family);
        let (hidden, queries, kv) = (config.hidden_size, config.query_width(), config.kv_width());
        let gated = if config.attention_gate { 2 * queries } else { queries };
        let name = |pattern: &str| pattern.replace("{}", &layer.to_string());
        for (part, rows) in [(family.query, gated), (family.key, kv), (family.value, kv)] {
            let ignored = Anchors::Ignored;
            self.linear(&name(part), (rows, hidden), config.attention_bias, ignored, 1.0);
        }
        if config.head_norms {
            self.norm(&name(family.query_norm), config.head_dim, 1.0);
            self.norm(&name(family.key_norm), config.head_dim, 1.0);
        }
        if config.sub_norms {
            self.norm(&name(family.attention_sub_norm), queries, 1.0);
        }
        self.linear(&name(family.output), (hidden, queries), config.attention_bias, kept, ADDED);
    }

    /// The gain of the anchors before the gate, such that they outweigh the other columns,
    /// although the residual stream grows from layer to layer.
    fn anchor_gain(&self, layer: usize) -> f32 {
        let (hidden, anchors) = (to_f32(self.config.hidden_size), to_f32(ANCHORS));
        let others = EMBEDDING_VARIANCE + to_f32(2 * layer + 1) * ADDED * ADDED;
        let mean_square = (anchors * ANCHOR_VALUE.powi(2) + (hidden - anchors) * others) / hidden;
        let normed = ANCHOR_VALUE / mean_square.sqrt();
        CERTAIN * deviation(self.config.hidden_size) / anchors / normed
    }

    fn norm(&mut self, name: &str, width: usize, anchors: f32) {
        let added = if self.norms_lack_one() { 1.0 } else { 0.0 };
        let content = Content::Constant { value: 1.0 - added, anchors: anchors - added };
        self.push(name, self.dtype, &[width], content);
    }

    /// A ternary matrix whose outputs have the standard deviation `output` for normed inputs.
    fn linear(
        &mut self,
        name: &str,
        (rows, columns): (usize, usize),
        has_bias: bool,
        anchors: Anchors,
        output: f32,
    ) {
        let Family { weight, scale, bias, linear_norm, .. } = *self.family;
        let quantization = &self.config.quantization;
        if quantization.linear_norm_eps.is_some() {
            self.norm(&format!("{name}{linear_norm}"), columns, 1.0);
        }
        let magnitude = output / deviation(columns);
        let weight = format!("{name}{weight}");
        match quantization.mode {
            QuantizationMode::Offline => {
                let codes = Content::Ternary { rows, columns, anchors };
                self.push(&weight, Dtype::U8, &[rows / FIELDS, columns], codes);
                let value = match quantization.linear_class {
                    LinearClass::AutoBitLinear => magnitude,
                    LinearClass::BitLinear => magnitude.recip(),
                };
                let value = Content::Constant { value, anchors: value };
                self.push(&format!("{name}{scale}"), self.dtype, &[1], value);
            }
            QuantizationMode::Online => {
                let floats = Content::Master { step: magnitude / MEAN_STEPS };
                self.push(&weight, self.dtype, &[rows, columns], floats);
            }
            QuantizationMode::Affine { group } => {
                self.affine(name, (rows, columns), group, magnitude);
            }
            QuantizationMode::FakeQuantized => {
                let floats = Content::FakeQuantized { scale: magnitude };
                self.push(&weight, self.dtype, &[rows, columns], floats);
            }
        }
        if has_bias {
            let zeros = Content::Constant { value: 0.0, anchors: 0.0 };
            self.push(&format!("{name}{bias}"), self.dtype, &[rows], zeros);
        }
    }

    /// The three tensors of a matrix in MLX's layout.
    fn affine(&mut self, name: &str, (rows, columns): (usize, usize), group: usize, scale: f32) {
        const WORD_CODES: usize = 16;
        let groups = [rows, columns / group];
        let codes = [rows, columns / WORD_CODES];
        self.push(&format!("{name}.weight"), Dtype::U32, &codes, Content::Codes);
        for (part, scale) in [("scales", scale), ("biases", -scale)] {
            let content = Content::GroupScales { scale };
            self.push(&format!("{name}.{part}"), self.dtype, &groups, content);
        }
        self.signs(name, columns);
    }

    fn push(&mut self, name: &str, dtype: Dtype, shape: &[usize], content: Content) {
        self.tensors.push(NewTensor { name: name.into(), dtype, shape: shape.to_vec() });
        self.contents.push(content);
    }
}

/// Tensor names of an architecture; of those that share one, the older one's names go with the
/// spelling of 1bitLLM's models.
fn family(architecture: &str) -> &'static Family {
    match architecture {
        "BitnetForCausalLM" => &BITNET_1BITLLM,
        "LlamaForCausalLM" => &LLAMA,
        "Qwen3ForCausalLM" => &QWEN3,
        "Qwen3_5ForCausalLM" => &QWEN3_5,
        _ => &BITNET,
    }
}

/// See [`Content`]'s module.
fn weighed(closed: f64) -> Anchors {
    let code = if closed > 0.5 { 0 } else { 2 };
    Anchors::Weighed { share: (2.0 * closed - 1.0).abs(), code }
}

/// Standard deviation of a random ternary row times a normed vector.
fn deviation(columns: usize) -> f32 {
    (to_f32(columns) * TERNARY_VARIANCE).sqrt()
}

#[expect(clippy::cast_precision_loss, reason = "sizes of a model's layers")]
fn to_f32(size: usize) -> f32 {
    size as f32
}
