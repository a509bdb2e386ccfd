//! The keys `prism.hadamard.*` of a model whose weights were trained for rotated inputs.

use super::{
    super::hadamard::{GGUF, gguf_name, key},
    ModelConfig, hybrid, unwritable,
    values::Values,
};
use crate::{
    config::{HEAD, Hadamard},
    error::CheckpointError,
};

/// Where else such a model can go.
const WAY_OUT: &str = "write .setun";

/// Writes the rotation of a model, if it has one.
pub(super) fn write_keys(
    values: &mut Values,
    config: &ModelConfig,
    is_hybrid: bool,
) -> Result<(), CheckpointError> {
    let Some(hadamard) = &config.hadamard else { return Ok(()) };
    let is_tied = is_head_tied(hadamard, config.tied_head)?;
    let names = names(hadamard, config.tied_head)?;
    values.u32(&key("version"), if is_tied { 2 } else { 1 });
    values.size(&key("block_size"), hadamard.block);
    values.text(&key("transform"), "normalized-sylvester-walsh-hadamard");
    values.text(&key("axis"), "input-last-dimension");
    write_signs(values, hadamard);
    values.texts(&key("weight_names"), &names);
    if hadamard.embedding {
        values.texts(&key("inverse_weight_names"), &[GGUF.table.to_owned()]);
    }
    if is_hybrid {
        values.flag(&key("gdn_v_grouped"), hybrid::is_output_grouped(config)?);
    }
    if is_tied {
        values.flag(&key("tied_output"), true);
    }
    Ok(())
}

/// Whether the head is the rotated table. Of a table that is both, both or neither are rotated.
fn is_head_tied(hadamard: &Hadamard, is_tied: bool) -> Result<bool, CheckpointError> {
    if is_tied && hadamard.embedding != hadamard.layers.contains(HEAD) {
        let what = "a table that is rotated as the embedding or as the head, not as both";
        return Err(unwritable(what.to_owned(), WAY_OUT));
    }
    Ok(is_tied && hadamard.embedding)
}

/// Names of the rotated matrices in the file.
fn names(hadamard: &Hadamard, is_tied: bool) -> Result<Vec<String>, CheckpointError> {
    let layers = hadamard.layers.iter().filter(|layer| !is_tied || *layer != HEAD);
    let name = |layer: &String| {
        let refused = || unwritable(format!("a rotation of the inputs of `{layer}`"), WAY_OUT);
        gguf_name(layer).ok_or_else(refused)
    };
    let names = layers.map(name).collect::<Result<Vec<_>, _>>()?;
    if names.is_empty() {
        return Err(unwritable("a rotation of the table alone".to_owned(), WAY_OUT));
    }
    Ok(names)
}

fn write_signs(values: &mut Values, hadamard: &Hadamard) {
    let is_explicit = !hadamard.signs.is_empty();
    values.text(&key("sign_mode"), if is_explicit { "explicit" } else { "identity" });
    let width = |width: &usize| i32::try_from(*width).unwrap_or(i32::MAX);
    let widths: Vec<_> = hadamard.signs.keys().map(width).collect();
    values.i32s(&key("sign_widths"), &widths);
    let signs = hadamard.signs.values().flatten();
    let signs: Vec<_> = signs.map(|sign| if *sign < 0.0 { -1 } else { 1 }).collect();
    values.i32s(&key("sign_values"), &signs);
}
