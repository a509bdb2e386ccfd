//! The kinds of layers, and the fields of `config.json` that say which layer is of which.

use setun_ops::{
    HAS_RECURRENT,
    delta_net::{DeltaNetShape, HeadOrder},
    ternary::MAX_COLUMNS,
};

use super::{MAX_HEAD_DIM, MAX_LAYERS, unsupported};
use crate::{error::CheckpointError, json::Fields};

/// How a layer mixes positions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mixer {
    /// Causal attention over the KV cache, with the heads of the configuration.
    Attention,
    /// A gated delta net over a recurrent state.
    DeltaNet(DeltaNetShape),
}

impl Mixer {
    /// The shape of a delta net's heads, if it is one.
    #[must_use]
    pub fn delta_net(self) -> Option<DeltaNetShape> {
        match self {
            Self::Attention => None,
            Self::DeltaNet(shape) => Some(shape),
        }
    }
}

/// Most rows that a channel of a delta net's convolution sees.
pub const MAX_KERNEL: usize = 16;

/// The field of the order of value heads, which setun writes where it is not transformers'.
pub(crate) const ORDER: &str = "delta_net_order";

/// The field of the order of value heads in the columns of output matrices.
pub(crate) const OUTPUT_ORDER: &str = "delta_net_output_order";

/// Name of an order in `config.json`.
pub(crate) fn name_of_order(order: HeadOrder) -> &'static str {
    match order {
        HeadOrder::Grouped => "grouped",
        HeadOrder::Tiled => "tiled",
    }
}

/// Reads the kinds of all layers. Only a hybrid model has delta nets.
pub(super) fn parse(
    fields: &Fields<'_>,
    is_hybrid: bool,
    default_layers: usize,
) -> Result<Vec<Mixer>, CheckpointError> {
    const TYPES: &str = "layer_types";
    let layers = fields.size("num_hidden_layers", MAX_LAYERS)?.unwrap_or(default_layers);
    let types = fields.texts(TYPES)?;
    if !is_hybrid {
        let other = types.unwrap_or_default().into_iter().find(|found| *found != FULL);
        return match other {
            Some(found) => Err(unsupported(fields, TYPES, found, FULL)),
            None => Ok(vec![Mixer::Attention; layers]),
        };
    }
    if !HAS_RECURRENT {
        return Err(unsupported(
            fields,
            "recurrent layers in",
            "a browser",
            "the command and Rust",
        ));
    }
    let delta_net = Mixer::DeltaNet(parse_shape(fields)?);
    let Some(types) = types else {
        let interval = fields.size("full_attention_interval", MAX_LAYERS)?.unwrap_or(4);
        let is_full = |layer: usize| (layer + 1).is_multiple_of(interval);
        let mixer = |layer| if is_full(layer) { Mixer::Attention } else { delta_net };
        return Ok((0..layers).map(mixer).collect());
    };
    if types.len() != layers {
        let expected = format!("{layers} types, one for each layer");
        return Err(fields.error(TYPES, &expected, &format!("{} types", types.len())));
    }
    let mixer = |found| match found {
        FULL => Ok(Mixer::Attention),
        LINEAR => Ok(delta_net),
        _ => Err(unsupported(fields, TYPES, found, "full_attention, linear_attention")),
    };
    types.into_iter().map(mixer).collect()
}

/// Type of a layer that attends.
pub(crate) const FULL: &str = "full_attention";

/// Type of a layer that is a delta net.
pub(crate) const LINEAR: &str = "linear_attention";

fn parse_shape(fields: &Fields<'_>) -> Result<DeltaNetShape, CheckpointError> {
    let size = |key, limit, default| Ok(fields.size(key, limit)?.unwrap_or(default));
    let order = |key| {
        let name = fields.text(key)?.unwrap_or("grouped");
        let order = [HeadOrder::Grouped, HeadOrder::Tiled].into_iter();
        let mut order = order.filter(|order| name_of_order(*order) == name);
        order.next().ok_or_else(|| fields.error(key, "grouped or tiled", name))
    };
    let shape = DeltaNetShape {
        key_heads: size("linear_num_key_heads", MAX_COLUMNS, 16)?,
        value_heads: size("linear_num_value_heads", MAX_COLUMNS, 32)?,
        key_dim: size("linear_key_head_dim", MAX_HEAD_DIM, 128)?,
        value_dim: size("linear_value_head_dim", MAX_HEAD_DIM, 128)?,
        kernel: size(KERNEL, MAX_KERNEL, 4)?,
        order: order(ORDER)?,
        output_order: order(OUTPUT_ORDER)?,
    };
    check_shape(fields, &shape)?;
    Ok(in_least_orders(shape))
}

/// The field of a convolution's rows.
const KERNEL: &str = "linear_conv_kernel_dim";

fn check_shape(fields: &Fields<'_>, shape: &DeltaNetShape) -> Result<(), CheckpointError> {
    let DeltaNetShape { key_heads, value_heads, kernel, .. } = *shape;
    if kernel < 2 {
        let expected = format!("a whole number from 2 to {MAX_KERNEL}");
        return Err(fields.error(KERNEL, &expected, &kernel.to_string()));
    }
    if !value_heads.is_multiple_of(key_heads) {
        let expected = format!("a multiple of linear_num_key_heads, {key_heads}");
        return Err(fields.error("linear_num_value_heads", &expected, &value_heads.to_string()));
    }
    if shape.input_width() > MAX_COLUMNS {
        let expected = format!("heads of at most {MAX_COLUMNS} columns together");
        return Err(fields.error("linear_num_value_heads", &expected, &value_heads.to_string()));
    }
    Ok(())
}

/// The shape with one name for each order: with one key head, or one value head for each key head, both
/// orders are the same.
fn in_least_orders(shape: DeltaNetShape) -> DeltaNetShape {
    if shape.key_heads != 1 && shape.key_heads != shape.value_heads {
        return shape;
    }
    DeltaNetShape { order: HeadOrder::Grouped, output_order: HeadOrder::Grouped, ..shape }
}

#[cfg(test)]
mod tests;
