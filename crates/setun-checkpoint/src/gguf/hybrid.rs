//! Keys and tensors of the architecture `qwen35`: gated delta nets with attention between them.

use serde_json::{Map, Value, json};
use setun_ops::delta_net::HeadOrder;

use super::{
    config::{HYBRID, Keys},
    hadamard::{self, Rotation},
    metadata::Metadata,
};
use crate::{
    config::{
        FULL, LINEAR, MAX_CONTEXT, MAX_LAYERS, NORMS_INCLUDE_ONE, ORDER, OUTPUT_ORDER, QWEN35_TEXT,
        name_of_order, part_of,
    },
    error::CheckpointError,
    hybrid::passed_over,
    tensor::TensorInfo,
    warning::Warning,
};

/// Ends of the architecture's keys besides those that all architectures have.
pub(super) const KEYS: [&str; 9] = [
    "attention.recurrent_layers",
    "full_attention_interval",
    "nextn_predict_layers",
    "rope.dimension_sections",
    "ssm.conv_kernel",
    "ssm.group_count",
    "ssm.inner_size",
    "ssm.state_size",
    "ssm.time_step_rank",
];

/// Whether a file, or the first of several, is of the architecture.
pub(super) fn is_hybrid(metadata: &Metadata) -> bool {
    metadata.text("general.architecture") == Ok(Some(HYBRID))
}

/// Layers of the model: those of the MTP head come after them and are counted with them.
pub(super) fn layers(keys: &Keys<'_>) -> Result<usize, CheckpointError> {
    let blocks = keys.needed("block_count", MAX_LAYERS)?;
    let mtp = keys.size("nextn_predict_layers", MAX_LAYERS)?.unwrap_or(0);
    let error = || {
        let expected = format!("fewer than the {blocks} blocks");
        keys.error("nextn_predict_layers", &expected, &mtp.to_string())
    };
    blocks.checked_sub(mtp).filter(|layers| *layers > 0).ok_or_else(error)
}

/// The fields of `config.json` of which a hybrid model has others.
pub(super) fn fields(
    keys: &Keys<'_>,
    rotation: Option<&Rotation>,
) -> Result<Map<String, Value>, CheckpointError> {
    let size = |key| keys.needed(key, MAX_CONTEXT);
    let (value_heads, value_width) = (size("ssm.time_step_rank")?, size("ssm.inner_size")?);
    if !value_width.is_multiple_of(value_heads) {
        let expected = format!("a multiple of ssm.time_step_rank, {value_heads}");
        return Err(keys.error("ssm.inner_size", &expected, &value_width.to_string()));
    }
    let head_dim = keys.head_dim(size("embedding_length")?, keys.heads()?)?;
    let fields = json!({
        "architectures": [QWEN35_TEXT],
        "model_type": "qwen3_5_text",
        "num_hidden_layers": layers(keys)?,
        "layer_types": layer_types(keys)?,
        "partial_rotary_factor": part_of(size("rope.dimension_count")?, head_dim),
        "linear_conv_kernel_dim": size("ssm.conv_kernel")?,
        "linear_num_key_heads": size("ssm.group_count")?,
        "linear_num_value_heads": value_heads,
        "linear_key_head_dim": size("ssm.state_size")?,
        "linear_value_head_dim": value_width / value_heads,
        NORMS_INCLUDE_ONE: true,
        ORDER: name_of_order(HeadOrder::Tiled),
        OUTPUT_ORDER: name_of_order(output_order(keys, rotation)?),
    });
    Ok(fields.as_object().cloned().unwrap_or_default())
}

/// Order of the value heads in the columns of output matrices. Where the file says that it is
/// transformers', that holds for the rotated ones, so all must be.
fn output_order(
    keys: &Keys<'_>,
    rotation: Option<&Rotation>,
) -> Result<HeadOrder, CheckpointError> {
    let Some(rotation) = rotation.filter(|rotation| rotation.is_output_grouped) else {
        return Ok(HeadOrder::Tiled);
    };
    let key_heads = keys.needed("ssm.group_count", MAX_CONTEXT)?;
    let value_heads = keys.needed("ssm.time_step_rank", MAX_CONTEXT)?;
    let is_rotated = |layer: usize| {
        let name = format!("model.layers.{layer}.linear_attn.out_proj");
        rotation.hadamard.layers.contains(&name)
    };
    let types = layer_types(keys)?;
    let mut delta_nets = (0..types.len()).filter(|layer| types[*layer] == LINEAR);
    let has_one_order = key_heads == 1 || key_heads == value_heads;
    match delta_nets.find(|layer| !has_one_order && !is_rotated(*layer)) {
        None => Ok(HeadOrder::Grouped),
        Some(layer) => Err(hadamard::unclear_order(keys.file(), layer)),
    }
}

/// `attention.recurrent_layers` has a flag for each block and goes before the interval.
fn layer_types(keys: &Keys<'_>) -> Result<Vec<&'static str>, CheckpointError> {
    const FLAGS: &str = "attention.recurrent_layers";
    let name = |is_recurrent: bool| if is_recurrent { LINEAR } else { FULL };
    let (layers, blocks) = (layers(keys)?, keys.needed("block_count", MAX_LAYERS)?);
    let Some(flags) = keys.flags(FLAGS)? else {
        let interval = keys.size("full_attention_interval", MAX_LAYERS)?.unwrap_or(4).max(1);
        return Ok((1..=layers).map(|layer| name(!layer.is_multiple_of(interval))).collect());
    };
    if flags.len() != blocks {
        let expected = format!("{blocks} flags, one for each block");
        return Err(keys.error(FLAGS, &expected, &format!("a list of {} flags", flags.len())));
    }
    Ok(flags.iter().take(layers).map(|flag| name(*flag)).collect())
}

/// Takes out the tensors of blocks after the layers, which are an MTP head.
pub(super) fn drop_mtp(tensors: &mut Vec<TensorInfo>, layers: usize) -> Option<Warning> {
    let is_layer = |info: &TensorInfo| block(&info.name).is_none_or(|block| block < layers);
    let (kept, mtp): (Vec<_>, Vec<_>) = std::mem::take(tensors).into_iter().partition(is_layer);
    *tensors = kept;
    passed_over(&mtp.first()?.file, 0, mtp.len())
}

/// The block of a tensor, by our name or by one that stands for nothing here.
fn block(name: &str) -> Option<usize> {
    let rest = name.strip_prefix("model.layers.").or(name.strip_prefix("blk."))?;
    rest.split_once('.')?.0.parse().ok()
}

#[cfg(test)]
mod tests;
