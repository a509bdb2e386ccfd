//! Scales of linear layers in a container, and their description in its configuration.

use serde_json::{Map, Value};

use super::{Options, TableType, unwritable};
use crate::{
    config::{LinearClass, QuantizationMode},
    error::CheckpointError,
    files, json,
    outline::{Outline, OutlineKind, OutlineTensor},
    scales,
};

/// The linear layers of a container, as its `config.json` describes them.
#[derive(Clone, Copy, Debug)]
pub(super) struct Target {
    pub(super) class: LinearClass,
    pub(super) tied_head: bool,
    is_changed: bool, // against the source's configuration
}

impl Options {
    /// The form of a tensor, if it is a table.
    pub(super) fn table(&self, tensor: &OutlineTensor, target: Target) -> TableType {
        let is_linear = matches!(tensor.kind, OutlineKind::Ternary(_));
        let is_table = !is_linear && tensor.shape.len() == 2;
        if !is_table {
            return TableType::Stored;
        }
        let is_embedding = tensor.name.ends_with("embed_tokens.weight");
        if is_embedding && !target.tied_head { self.embedding } else { self.head }
    }
}

impl Target {
    /// Stored codes keep their class. Master weights become a `bitlinear`, whose bias enters
    /// after the scale as theirs does; other floats, whose scales multiply, an `autobitlinear`.
    pub(super) fn of(outline: &Outline, options: &Options) -> Self {
        let config = &outline.config;
        let quantization = &config.quantization;
        let is_stored = quantization.mode == QuantizationMode::Offline;
        let has_bias = config.attention_bias || config.mlp_bias;
        let is_auto = quantization.linear_class == LinearClass::AutoBitLinear;
        let before = options.bias_before_scale.unwrap_or(is_stored && is_auto);
        let class = match quantization.mode {
            _ if has_bias && before => LinearClass::AutoBitLinear,
            _ if has_bias => LinearClass::BitLinear,
            QuantizationMode::Offline => quantization.linear_class,
            QuantizationMode::Online => LinearClass::BitLinear,
            QuantizationMode::FakeQuantized | QuantizationMode::Affine { .. } => {
                LinearClass::AutoBitLinear
            }
        };
        let is_changed = !is_stored || class != quantization.linear_class;
        Self { class, tied_head: config.tied_head, is_changed }
    }

    /// The model's small files, with a configuration that says how the container stores it.
    pub(super) fn files(
        self,
        outline: &Outline,
    ) -> Result<Vec<(String, Vec<u8>)>, CheckpointError> {
        let files = outline.files.iter();
        let mut files: Vec<_> =
            files.map(|(name, bytes)| (name.to_owned(), bytes.to_vec())).collect();
        let config = files.iter_mut().find(|(name, _)| name == files::CONFIG);
        let Some((_, config)) = config else {
            return Err(CheckpointError::MissingFile { file: files::CONFIG.to_owned() });
        };
        if self.is_changed {
            *config = self.config(config)?;
        }
        Ok(files)
    }

    fn config(self, original: &[u8]) -> Result<Vec<u8>, CheckpointError> {
        const KEY: &str = "quantization_config";
        let mut config: Map<String, Value> = json::read(files::CONFIG, original)?;
        let mut quantization = match config.remove(KEY) {
            Some(Value::Object(quantization)) => quantization,
            _ => Map::new(),
        };
        let class = self.class.name();
        for (key, value) in
            [("quant_method", "bitnet"), ("linear_class", class), ("quantization_mode", "offline")]
        {
            quantization.insert(key.to_owned(), value.into());
        }
        config.insert(KEY.to_owned(), quantization.into());
        json::write_text(files::CONFIG, &config).map(String::into_bytes)
    }

    /// The stored form of a scale that multiplies.
    pub(super) fn stored_scale(self, name: &str, factor: f32) -> Result<f32, CheckpointError> {
        scales::stored(factor, self.class).ok_or_else(|| {
            let what = format!(
                "the scale {factor:?} of `{name}`, which its bias needs as a reciprocal that no \
                 number has"
            );
            unwritable(what, "write GGUF or safetensors")
        })
    }
}
