//! Hybrid models in the architecture `qwen35`: their keys, and how their tensors differ from the outline's.

use setun_ops::{
    HAS_RECURRENT, OpsError,
    delta_net::{DeltaNetShape, HeadOrder, decay_factor},
    ternary::TernaryMatrix,
};

use super::{ModelConfig, unwritable, values::Values};
use crate::{config::Mixer, error::CheckpointError};

/// Where else such a model can go.
const WAY_OUT: &str = "write .setun";

/// Writes the keys that only this architecture has. `key` puts its name before the end of a key.
pub(super) fn write_keys(
    values: &mut Values,
    config: &ModelConfig,
    key: impl Fn(&str) -> String,
) -> Result<(), CheckpointError> {
    let shape = shape(config)?;
    values.i32s(&key("rope.dimension_sections"), &sections(config.rope.dimensions / 2));
    let is_recurrent: Vec<_> =
        config.layers.iter().map(|layer| layer.delta_net().is_some()).collect();
    if let Some(interval) = interval(&is_recurrent) {
        values.size(&key("full_attention_interval"), interval);
    }
    values.flags(&key("attention.recurrent_layers"), &is_recurrent);
    values.size(&key("ssm.conv_kernel"), shape.kernel);
    values.size(&key("ssm.state_size"), shape.key_dim);
    values.size(&key("ssm.group_count"), shape.key_heads);
    values.size(&key("ssm.time_step_rank"), shape.value_heads);
    values.size(&key("ssm.inner_size"), shape.value_width());
    Ok(())
}

/// The shape of all delta nets, as the keys have room for one.
fn shape(config: &ModelConfig) -> Result<DeltaNetShape, CheckpointError> {
    let mut shapes = config.layers.iter().filter_map(|layer| layer.delta_net());
    let refused = |what: &str| unwritable(format!("a hybrid model {what}"), WAY_OUT);
    let first = shapes.next().ok_or_else(|| refused("without a delta net"))?;
    if shapes.any(|shape| shape != first) {
        return Err(refused("whose delta nets are of several shapes"));
    }
    if config.attention_bias || config.mlp_bias {
        return Err(refused("with biases"));
    }
    Ok(first)
}

/// How many pairs of a head turn by each of four positions. The first three take turns, as they do in models
/// of text and images; for text all are equal. The fourth is always 0, so no pair is left to it.
fn sections(pairs: usize) -> [i32; 4] {
    let section = |rest: usize| i32::try_from((pairs + rest) / 3).unwrap_or(i32::MAX);
    [section(2), section(1), section(0), 0]
}

/// The number of which every layer attends, if there is one.
fn interval(is_recurrent: &[bool]) -> Option<usize> {
    let interval = is_recurrent.iter().position(|recurrent| !recurrent)? + 1;
    let mut layers = (1..).zip(is_recurrent);
    let is_regular =
        layers.all(|(layer, recurrent): (usize, _)| *recurrent != layer.is_multiple_of(interval));
    is_regular.then_some(interval)
}

/// Name of an output matrix's layer in a rotation.
const OUTPUT: &str = "linear_attn.out_proj";

/// Whether columns of the output matrices stay in transformers' order of heads, as the rotation of their
/// inputs mixes columns of several heads. All output matrices must then be rotated.
pub(super) fn is_output_grouped(config: &ModelConfig) -> Result<bool, CheckpointError> {
    let is_rotated = |layer: usize| is_rotated(config, &format!("model.layers.{layer}.{OUTPUT}"));
    let grouped = |mixer: &Mixer| {
        mixer.delta_net().is_some_and(|shape| shape.output_order == HeadOrder::Grouped)
    };
    let layers = (0..).zip(&config.layers).filter(|(_, mixer)| grouped(mixer));
    let (rotated, plain): (Vec<usize>, Vec<usize>) =
        layers.map(|(layer, _)| layer).partition(|layer| is_rotated(*layer));
    match (rotated.is_empty(), plain.first()) {
        (false, Some(layer)) => {
            let what =
                format!("a rotation of some output matrices of delta nets, not of layer {layer}'s");
            Err(unwritable(what, WAY_OUT))
        }
        (is_empty, _) => Ok(!is_empty),
    }
}

fn is_rotated(config: &ModelConfig, layer: &str) -> bool {
    config.hadamard.as_ref().is_some_and(|hadamard| hadamard.layers.contains(layer))
}

/// How a tensor of the file differs from that of the outline.
#[derive(Clone, Copy, Debug)]
pub(super) struct Change {
    elements: Elements,
    heads: Option<(Heads, DeltaNetShape)>,
}

/// The change of each element.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Elements {
    /// None.
    Same,
    /// A gain gets the 1 that its source adds at load.
    PlusOne,
    /// A logarithm becomes the decay itself.
    Decay,
}

/// Where the value heads lie that become tiled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Heads {
    /// In rows from the first one on, this many for a head.
    Rows { first: usize, width: usize },
    /// In columns.
    Columns,
}

impl Change {
    pub(super) fn of(name: &str, config: &ModelConfig) -> Self {
        let is_gain = name.ends_with("norm.weight") && !name.ends_with(".linear_attn.norm.weight");
        let elements = if name.ends_with(".linear_attn.A_log") {
            Elements::Decay
        } else if is_gain && config.unit_norms {
            Elements::PlusOne
        } else {
            Elements::Same
        };
        Self { elements, heads: moved_heads(name, config) }
    }

    /// The elements of a vector of the file, in the outline's order.
    pub(super) fn elements(self, mut values: Vec<f32>) -> Vec<f32> {
        let change = match self.elements {
            Elements::Same => return values,
            Elements::PlusOne => |gain| 1.0 + gain,
            Elements::Decay => decay_factor,
        };
        for value in &mut values {
            *value = change(*value);
        }
        values
    }

    /// The matrix of the file.
    pub(super) fn matrix(self, matrix: TernaryMatrix) -> Result<TernaryMatrix, OpsError> {
        if !HAS_RECURRENT {
            return Ok(matrix);
        }
        match (self.row_order(), self.heads) {
            (Some(order), _) => matrix.in_order(&order),
            (None, Some((Heads::Columns, shape))) => {
                matrix.with_column_blocks(&tiled(shape), shape.value_dim)
            }
            (None, _) => Ok(matrix),
        }
    }

    /// Whether rows of the file are in another order.
    pub(super) fn moves_rows(self) -> bool {
        HAS_RECURRENT && matches!(self.heads, Some((Heads::Rows { .. }, _)))
    }

    /// The bytes of rows in the order of the file; none if they are not the rows of all heads.
    pub(super) fn rows(self, bytes: &[u8], rows: usize) -> Option<Vec<u8>> {
        let Some(order) = self.row_order() else { return Some(bytes.to_vec()) };
        let width = bytes.len() / rows.max(1);
        if order.len() != rows {
            return None;
        }
        Some(order.iter().flat_map(|row| &bytes[row * width..][..width]).copied().collect())
    }

    /// Rows of the outline's tensor, in the order of the file's.
    fn row_order(self) -> Option<Vec<usize>> {
        if !HAS_RECURRENT {
            return None;
        }
        let (Heads::Rows { first, width }, shape) = self.heads? else { return None };
        let of_head = |head: usize| (first + head * width)..(first + (head + 1) * width);
        Some((0..first).chain(tiled(shape).into_iter().flat_map(of_head)).collect())
    }
}

fn moved_heads(name: &str, config: &ModelConfig) -> Option<(Heads, DeltaNetShape)> {
    let (layer, part) = name.strip_prefix("model.layers.")?.split_once('.')?;
    let mixer = config.layers.get(layer.parse::<usize>().ok()?)?;
    let shape = mixer.delta_net()?;
    let width = shape.value_dim;
    let (heads, order) = match part.strip_prefix("linear_attn.")? {
        "in_proj_qkv.weight" | "conv1d.weight" => {
            (Heads::Rows { first: 2 * shape.key_width(), width }, shape.order)
        }
        "in_proj_z.weight" => (Heads::Rows { first: 0, width }, shape.order),
        "in_proj_a.weight" | "in_proj_b.weight" | "A_log" | "decay" | "dt_bias" => {
            (Heads::Rows { first: 0, width: 1 }, shape.order)
        }
        "out_proj.weight" if !is_rotated(config, name.strip_suffix(".weight")?) => {
            (Heads::Columns, shape.output_order)
        }
        _ => return None,
    };
    // With one key head, or one value head for each, both orders are the same.
    let is_moved = order == HeadOrder::Grouped && shape.key_heads > 1 && shape.group() > 1;
    is_moved.then_some((heads, shape))
}

/// Grouped heads, in tiled order.
fn tiled(shape: DeltaNetShape) -> Vec<usize> {
    let head = |place| place % shape.key_heads * shape.group() + place / shape.key_heads;
    (0..shape.value_heads).map(head).collect()
}

#[cfg(test)]
mod tests;
