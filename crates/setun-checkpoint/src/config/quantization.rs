//! Storage of linear layers: `quantization_config`, or what its absence means.

use setun_ops::{quantize::is_group, ternary::MAX_COLUMNS};

use super::{
    ACTIVATION_GROUP, LinearClass, Quantization, QuantizationMode, family::Family, unsupported,
};
use crate::{
    dtype::{Dtype, FLOATS},
    error::CheckpointError,
    generation::number,
    json::Fields,
    tensor::TensorInfo,
};

pub(super) fn parse(fields: &Fields<'_>, family: Family) -> Result<Quantization, CheckpointError> {
    let shards = fields.size("pretraining_model_parallel", MAX_COLUMNS)?.unwrap_or(1);
    // MLX writes the same object twice, by its own name and by transformers'.
    let mut quantization = fields.object("quantization_config")?;
    if !quantization.is_present() {
        quantization = fields.object("quantization")?;
    }
    let plain = Quantization {
        linear_class: LinearClass::BitLinear,
        mode: QuantizationMode::FakeQuantized,
        linear_norm_eps: None,
        shards,
        activation_group: parse_group(&quantization, Some(ACTIVATION_GROUP))?,
    };
    match quantization.text("quant_method")? {
        Some("bitnet") => Ok(Quantization { shards, ..parse_bitnet(&quantization)? }),
        None if quantization.has("bits") => {
            Ok(Quantization { mode: parse_affine(&quantization)?, ..plain })
        }
        None if quantization.is_present() => {
            Err(unsupported(fields, "quant_method", "none", "bitnet"))
        }
        None if family.is_bitnet() => Ok(Quantization {
            linear_class: LinearClass::AutoBitLinear,
            mode: QuantizationMode::Online,
            activation_group: None,
            ..plain
        }),
        None => Ok(plain),
        Some(found) => Err(unsupported(fields, "quant_method", found, "bitnet")),
    }
}

/// transformers' `BitNet` integration.
fn parse_bitnet(quantization: &Fields<'_>) -> Result<Quantization, CheckpointError> {
    refuse_dense_layers(quantization)?;
    let linear_norm_eps = match quantization.flag("use_rms_norm")? {
        Some(true) => Some(parse_eps(quantization)?.unwrap_or(1e-6)),
        _ => None,
    };
    let refuse = |what, found, supported| Err(unsupported(quantization, what, found, supported));
    let linear_class = match quantization.text("linear_class")?.unwrap_or("bitlinear") {
        "bitlinear" => LinearClass::BitLinear,
        "autobitlinear" => LinearClass::AutoBitLinear,
        found => return refuse("linear_class", found, "bitlinear, autobitlinear"),
    };
    let mode = match quantization.text("quantization_mode")?.unwrap_or("offline") {
        "offline" => QuantizationMode::Offline,
        "online" => QuantizationMode::Online,
        found => return refuse("quantization_mode", found, "offline, online"),
    };
    let activation_group = parse_group(quantization, None)?;
    Ok(Quantization { linear_class, mode, linear_norm_eps, shards: 1, activation_group })
}

/// Columns of activations that share a scale: `"row"` or a number, which setun writes.
fn parse_group(
    quantization: &Fields<'_>,
    default: Option<usize>,
) -> Result<Option<usize>, CheckpointError> {
    const KEY: &str = "activation_group";
    let expected = format!("\"row\" or a multiple of 32 up to {MAX_COLUMNS}");
    let group = quantization.get(KEY, &expected, |value| {
        if value.as_str() == Some("row") {
            return Some(None);
        }
        let group = usize::try_from(value.as_u64()?).ok()?;
        (is_group(group) && group <= MAX_COLUMNS).then_some(Some(group))
    });
    Ok(group?.unwrap_or(default))
}

/// MLX's quantization: one kind for all modules, as only some could hold ternary weights.
fn parse_affine(quantization: &Fields<'_>) -> Result<QuantizationMode, CheckpointError> {
    const DEFAULT_GROUP: usize = 64;
    let refuse =
        |what, found: &str, supported| Err(unsupported(quantization, what, found, supported));
    match quantization.text("mode")?.unwrap_or("affine") {
        "affine" => {}
        found => return refuse("mode of quantization", found, "affine"),
    }
    match quantization.size("bits", 32)? {
        Some(2) => {}
        found => {
            let found = found.map_or("none".to_owned(), |bits| bits.to_string());
            return refuse("bits of quantization", &found, "2, which hold ternary codes");
        }
    }
    let group = match quantization.size("group_size", MAX_COLUMNS)?.unwrap_or(DEFAULT_GROUP) {
        group @ (32 | 64 | 128) => group,
        found => return refuse("group_size of quantization", &found.to_string(), "32, 64, 128"),
    };
    match quantization
        .keys()
        .find(|key| !["mode", "bits", "group_size", "activation_group"].contains(key))
    {
        None => Ok(QuantizationMode::Affine { group }),
        Some(module) => refuse("quantization of a module by itself", module, "one for all modules"),
    }
}

/// Linear layers within the model are all ternary here; a file that keeps some of them dense
/// would be quantized against its will.
fn refuse_dense_layers(quantization: &Fields<'_>) -> Result<(), CheckpointError> {
    const NEVER_TERNARY: [&str; 3] = ["lm_head", "embed_tokens", "model.embed_tokens"];
    let kept = quantization.texts("modules_to_not_convert")?.unwrap_or_default();
    match kept.into_iter().find(|module| !NEVER_TERNARY.contains(module)) {
        None => Ok(()),
        Some(found) => Err(unsupported(
            quantization,
            "modules_to_not_convert",
            found,
            "lm_head, model.embed_tokens",
        )),
    }
}

pub(super) fn parse_eps(fields: &Fields<'_>) -> Result<Option<f32>, CheckpointError> {
    number(fields, "rms_norm_eps", "a number of at least 0", |x| x >= 0.0)
}

impl TensorInfo {
    /// Whether only the data show by what a matrix is scaled: as a whole, by row or by group of
    /// columns.
    #[must_use]
    pub fn scale_is_in_data(&self, mode: QuantizationMode) -> bool {
        let is_float = FLOATS.contains(&self.dtype);
        let has_scales = self.dtype.is_ternary()
            && !matches!(self.dtype, Dtype::I2S | Dtype::I2SNarrow | Dtype::Base3);
        let is_fake_quantized = mode == QuantizationMode::FakeQuantized && is_float;
        let is_affine = matches!(mode, QuantizationMode::Affine { .. }) && self.dtype == Dtype::U32;
        self.shape.len() == 2 && (has_scales || is_fake_quantized || is_affine)
    }
}
