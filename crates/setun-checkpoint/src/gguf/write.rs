//! Writing a GGUF file, a tensor at a time.
//!
//! The file is [`Plan::header`], then what [`Plan::encode`] gives for each of [`Plan::places`],
//! in their order. The same model gives the same bytes.

mod hadamard;
mod hybrid;
mod metadata;
mod tensors;
mod values;

use crate::{
    blocks,
    config::{LinearClass, ModelConfig, QWEN35_TEXT, QuantizationMode, RopeScaling},
    dtype::Dtype,
    error::CheckpointError,
    outline::{Content, Outline, OutlineTensor, TensorLocation},
    tensor::Tensor,
    warning::Warning,
};

use setun_ops::HAS_RECURRENT;

use super::{ALIGNMENT, config::HYBRID, hadamard::ARCHITECTURES as ROTATED, names, rope::Llama3};
use metadata::Written;
use tensors::Entry;

/// The format, in errors.
pub(super) const FORMAT: &str = "GGUF";

/// The types that the matrices of linear layers can be written in.
pub const TARGETS: [Dtype; 7] = [
    Dtype::I2S,
    Dtype::Tq1_0,
    Dtype::Tq2_0,
    Dtype::Q2_0,
    Dtype::Q2_0Wide,
    Dtype::Pq2_0,
    Dtype::Ptq1_0,
];

/// The plan of a file.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The first bytes of the file.
    pub header: Vec<u8>,
    /// Where the bytes of each tensor of the outline go: after the header, without gaps.
    pub places: Vec<TensorLocation>,
    /// What of the tokenizer other programs will not do alike.
    pub warnings: Vec<Warning>,
    entries: Vec<Entry>, // as the places
}

/// Whether a scale is to be stored as a tensor beside it: all types but `I2_S` have
/// their scales in `f16`, which cannot hold every number exactly.
#[must_use]
pub fn needs_scale_beside(scale: f32) -> bool {
    blocks::encode::needs_scale_beside(scale)
}

/// Plans a file whose linear layers are of one of [`TARGETS`].
///
/// `scale_beside` says of a matrix, by its name in the outline, whether its one scale goes into a
/// tensor of its own (see [`needs_scale_beside`]); where that is not known, true is always right,
/// though programs that know no such tensors cannot read the file then. `I2_S` needs none.
///
/// # Errors
///
/// If GGUF has no way to say what the model computes, if a shape does not fit the type, or if the
/// tokenizer cannot be written.
pub fn plan(
    outline: &Outline,
    target: Dtype,
    scale_beside: impl Fn(&str) -> bool,
) -> Result<Plan, CheckpointError> {
    let config = &outline.config;
    if !TARGETS.contains(&target) {
        let what = format!("linear layers as {target}");
        return Err(unwritable(what, "write I2_S, TQ1_0, TQ2_0, Q2_0, PQ2_0 or PTQ1_0"));
    }
    let architecture = architecture(config)?;
    let entry = |tensor: &OutlineTensor| {
        Entry::new(tensor, target, config, architecture, scale_beside(&tensor.name))
    };
    let entries = outline.tensors.iter().map(entry).collect::<Result<Vec<_>, _>>()?;
    let llama3 = llama3(config)?;
    let Written { mut bytes, warnings } =
        metadata::write(outline, architecture, target, llama3, &entries)?;
    let data = tensors::write_infos(&mut bytes, llama3, config, &entries)?;
    let header_bytes = bytes.len() as u64;
    let places = entries.iter().zip(data).map(|(entry, range)| TensorLocation {
        name: entry.name.clone(),
        range: header_bytes + range.start..header_bytes + range.end,
    });
    Ok(Plan { places: places.collect(), header: bytes, warnings, entries })
}

impl Plan {
    /// Hands out the bytes of the place of a tensor, with its scale where that is beside it, and
    /// with what pads them: in pieces of a few MiB, each with its place in the file.
    ///
    /// # Errors
    ///
    /// If the plan has no such tensor, or its type or shape are not those of the outline, or the
    /// target cannot hold its scales.
    pub fn encode(
        &self,
        name: &str,
        content: Content,
        write: &mut dyn FnMut(u64, Vec<u8>),
    ) -> Result<(), CheckpointError> {
        let mut both = self.entries.iter().zip(&self.places);
        let found = both.find(|(entry, _)| entry.name == name);
        let (entry, place) = found.ok_or_else(|| crate::tensor::missing(&[], name))?;
        entry.encode(content, &mut |start, bytes| write(place.range.start + start, bytes))
    }
}

/// The architecture by which llama.cpp and bitnet.cpp know such a model.
fn architecture(config: &ModelConfig) -> Result<&'static str, CheckpointError> {
    use setun_ops::op::Activation::{ReluSquared, Silu};
    let quantization = &config.quantization;
    if quantization.linear_norm_eps.is_some() {
        let what = "norms within linear layers (`use_rms_norm`)".to_owned();
        return Err(unwritable(what, "write .setun or safetensors"));
    }
    let stored = quantization.mode == QuantizationMode::Offline;
    let before = stored && quantization.linear_class == LinearClass::AutoBitLinear;
    if before && (config.attention_bias || config.mlp_bias) {
        let what = "biases that are added before the scale (`autobitlinear`)".to_owned();
        return Err(unwritable(what, "write .setun or safetensors"));
    }
    let architecture = match (config.sub_norms, config.activation, config.architecture.as_str()) {
        (true, ReluSquared, _) => "bitnet-b1.58",
        (true, Silu, _) => "bitnet",
        (false, Silu, "LlamaForCausalLM") => "llama",
        (false, Silu, "Qwen3ForCausalLM") => "qwen3",
        (false, Silu, QWEN35_TEXT) if HAS_RECURRENT => HYBRID,
        (false, _, found) => {
            let what = format!("a {found} with this activation and without sub-norms");
            return Err(unwritable(what, "write .setun or safetensors"));
        }
    };
    if config.hadamard.is_some() && !ROTATED.contains(&architecture) {
        let what = format!("rotated weights of architecture {architecture}");
        return Err(unwritable(what, "write .setun"));
    }
    Ok(architecture)
}

/// Llama 3's rescaled frequencies; others have keys, or no way to be said.
fn llama3(config: &ModelConfig) -> Result<Option<Llama3>, CheckpointError> {
    match config.rope.scaling {
        RopeScaling::Yarn { attention_factor: Some(factor), .. } => {
            let what = format!("the attention factor {factor} of YaRN");
            Err(unwritable(what, "write .setun or safetensors"))
        }
        scaling => Ok(Llama3::of(scaling)),
    }
}

pub(super) fn unwritable(what: String, way_out: &'static str) -> CheckpointError {
    CheckpointError::Unwritable { format: FORMAT, what, way_out }
}
