//! `prism.hadamard.*`: the rotation of the inputs of matrices, in its versions 1 and 2. Packs of MLX have the
//! same keys in a JSON file.
//!
//! These keys alone decide whether a model rotates. A value that is not known here would mean another
//! computation, so it is refused.

use std::collections::{BTreeMap, BTreeSet};

use setun_ops::ternary::MAX_COLUMNS;

use super::{
    config::{HYBRID, unsupported},
    metadata::{Metadata, Value},
};
use crate::{
    config::{HEAD, Hadamard, TABLE, columns},
    error::CheckpointError,
    tensor::TensorInfo,
};

/// Beginning of the keys.
pub(super) const PREFIX: &str = "prism.hadamard.";

/// Ends of the keys.
const KEYS: [&str; 11] = [
    "version",
    "block_size",
    "transform",
    "axis",
    "sign_mode",
    "sign_widths",
    "sign_values",
    "weight_names",
    "inverse_weight_names",
    "gdn_v_grouped",
    "tied_output",
];

/// Architectures whose weights are rotated so.
pub(super) const ARCHITECTURES: [&str; 3] = ["llama", "qwen3", HYBRID];

/// How a format names tensors.
pub(crate) struct Naming {
    /// The table of embeddings.
    pub(super) table: &'static str,
    /// The head.
    head: &'static str,
    /// Our name of a layer whose inputs may be rotated.
    layer: fn(&str) -> Option<String>,
}

/// Names of GGUF files.
pub(super) const GGUF: Naming =
    Naming { table: "token_embd.weight", head: "output.weight", layer: gguf_layer };

/// Names of MLX's packs.
pub(crate) const MLX: Naming = Naming {
    table: "language_model.model.embed_tokens.weight",
    head: "language_model.lm_head.weight",
    layer: mlx_layer,
};

/// Parts of layers whose inputs may be rotated, by GGUF's names and by ours.
const ROTATED: [(&str, &str); 10] = [
    ("attn_q", "self_attn.q_proj"),
    ("attn_k", "self_attn.k_proj"),
    ("attn_v", "self_attn.v_proj"),
    ("attn_qkv", "linear_attn.in_proj_qkv"),
    ("attn_gate", "linear_attn.in_proj_z"),
    ("attn_output", "self_attn.o_proj"),
    ("ffn_gate", "mlp.gate_proj"),
    ("ffn_up", "mlp.up_proj"),
    ("ffn_down", "mlp.down_proj"),
    ("ssm_out", "linear_attn.out_proj"),
];

fn gguf_layer(name: &str) -> Option<String> {
    let (layer, part) = split(name.strip_prefix("blk.")?)?;
    let (_, ours) = ROTATED.iter().find(|(theirs, _)| *theirs == part)?;
    Some(format!("model.layers.{layer}.{ours}"))
}

/// GGUF's name of the matrix of a layer of ours whose inputs may be rotated.
pub(super) fn gguf_name(layer: &str) -> Option<String> {
    if layer == HEAD {
        return Some(GGUF.head.to_owned());
    }
    let (number, part) = layer.strip_prefix("model.layers.")?.split_once('.')?;
    let (theirs, _) = ROTATED.iter().find(|(_, ours)| *ours == part)?;
    Some(format!("blk.{number}.{theirs}.weight"))
}

fn mlx_layer(name: &str) -> Option<String> {
    let (layer, part) = split(name.strip_prefix("language_model.model.layers.")?)?;
    let is_rotated = ROTATED.iter().any(|(_, ours)| *ours == part);
    is_rotated.then(|| format!("model.layers.{layer}.{part}"))
}

/// Number and part of a layer in `0.part.weight`.
fn split(name: &str) -> Option<(u32, &str)> {
    let (layer, part) = name.split_once('.')?;
    Some((layer.parse().ok()?, part.strip_suffix(".weight")?))
}

/// The rotation of a file, as its `prism.hadamard.*` keys describe it.
pub(crate) struct Rotation {
    pub(crate) hadamard: Hadamard,
    /// Whether columns of the output matrices of delta nets were left in transformers' order of heads.
    pub(super) is_output_grouped: bool,
}

/// The error for an output matrix that is not rotated while `gdn_v_grouped` is set.
pub(super) fn unclear_order(file: &str, layer: usize) -> CheckpointError {
    let expected = format!("blk.{layer}.ssm_out.weight among prism.hadamard.weight_names");
    CheckpointError::field(file, key("gdn_v_grouped"), expected, "true")
}

/// The rotation of a file's weights, if it has one. `tensors` have our names.
pub(super) fn read(
    metadata: &Metadata,
    tensors: &[TensorInfo],
) -> Result<Option<Rotation>, CheckpointError> {
    if !metadata.values.keys().any(|key| key.starts_with(PREFIX)) {
        return Ok(None);
    }
    let architecture = metadata.text("general.architecture")?.unwrap_or_default();
    if !ARCHITECTURES.contains(&architecture) {
        let what = "rotated weights of architecture";
        return Err(unsupported(metadata, what, architecture, "llama, qwen3, qwen35"));
    }
    read_keys(metadata, tensors, GGUF).map(Some)
}

/// The rotation that the keys say.
pub(crate) fn read_keys(
    metadata: &Metadata,
    tensors: &[TensorInfo],
    naming: Naming,
) -> Result<Rotation, CheckpointError> {
    let keys = Keys { metadata, tensors, naming };
    let is_tied = keys.check_version()?;
    let mut ends = metadata.values.keys().filter_map(|key| key.strip_prefix(PREFIX));
    if let Some(unknown) = ends.find(|end| !KEYS.contains(end)) {
        let supported = "the keys of versions 1 and 2";
        return Err(unsupported(metadata, "the key", &key(unknown), supported));
    }
    keys.expect_text("transform", "normalized-sylvester-walsh-hadamard")?;
    keys.expect_text("axis", "input-last-dimension")?;
    let block = keys.block()?;
    let signs = keys.signs(block)?;
    let embedding = keys.is_table_rotated(is_tied)?;
    let layers = keys.layers(is_tied)?;
    keys.check_widths(block, &signs, embedding, &layers)?;
    let is_output_grouped = metadata.flag(&key("gdn_v_grouped"))?.unwrap_or(false);
    let hadamard = Hadamard { block, signs, layers, embedding };
    Ok(Rotation { hadamard, is_output_grouped })
}

/// A key by its end.
pub(super) fn key(end: &str) -> String {
    format!("{PREFIX}{end}")
}

struct Keys<'a> {
    metadata: &'a Metadata,
    tensors: &'a [TensorInfo],
    naming: Naming,
}

impl Keys<'_> {
    /// Version 2 is that of a head that is the rotated table, version 1 that of any other. Whether the
    /// head is tied.
    fn check_version(&self) -> Result<bool, CheckpointError> {
        const VERSION: &str = "version";
        let version = self.metadata.size(&key(VERSION), usize::MAX)?;
        let version = version.ok_or_else(|| self.metadata.absent(&key(VERSION), "1 or 2"))?;
        if version != 1 && version != 2 {
            let found = version.to_string();
            return Err(unsupported(self.metadata, "prism.hadamard.version", &found, "1, 2"));
        }
        let tied = self.metadata.flag(&key("tied_output"))?.unwrap_or(false);
        if tied != (version == 2) {
            let expected = format!("{} in version {version}", version == 2);
            return Err(self.error("tied_output", &expected, &tied.to_string()));
        }
        let has_head = self.has(HEAD);
        if tied && has_head {
            let expected = format!("no tensor {} beside it", self.naming.head);
            return Err(self.error("tied_output", &expected, "true"));
        }
        Ok(tied)
    }

    fn expect_text(&self, end: &str, expected: &'static str) -> Result<(), CheckpointError> {
        let found = self.metadata.text(&key(end))?;
        let found = found.ok_or_else(|| self.metadata.absent(&key(end), expected))?;
        if found == expected {
            return Ok(());
        }
        let what = if end == "axis" { "prism.hadamard.axis" } else { "prism.hadamard.transform" };
        Err(unsupported(self.metadata, what, found, expected))
    }

    fn block(&self) -> Result<usize, CheckpointError> {
        const BLOCK: &str = "block_size";
        let expected = format!("a power of two up to {MAX_COLUMNS}");
        let block = self.metadata.size(&key(BLOCK), usize::MAX)?;
        let block = block.ok_or_else(|| self.metadata.absent(&key(BLOCK), &expected))?;
        if block.is_power_of_two() && block <= MAX_COLUMNS {
            return Ok(block);
        }
        Err(self.error(BLOCK, &expected, &block.to_string()))
    }

    /// Signs by width, which lie one after the other in the order of the widths.
    fn signs(&self, block: usize) -> Result<BTreeMap<usize, Vec<f32>>, CheckpointError> {
        const MODE: &str = "sign_mode";
        let mode = self.metadata.text(&key(MODE))?;
        let is_explicit = match mode {
            Some("explicit") => true,
            Some("identity") => false,
            None => return Err(self.metadata.absent(&key(MODE), "explicit or identity")),
            Some(found) => {
                let what = "prism.hadamard.sign_mode";
                return Err(unsupported(self.metadata, what, found, "explicit, identity"));
            }
        };
        let widths = self.metadata.integers(&key("sign_widths"))?;
        let values = self.metadata.integers(&key("sign_values"))?;
        if is_explicit && widths.is_empty() {
            return Err(self.error("sign_widths", "the widths of all rotated inputs", "empty"));
        }
        let mut rest = values;
        let mut signs = BTreeMap::new();
        for width in widths {
            let width = self.width(*width, block)?;
            let Some((own, others)) = rest.split_at_checked(width) else {
                return Err(self.wrong_count(values.len()));
            };
            rest = others;
            if let Some(other) = own.iter().find(|sign| ![1, -1].contains(*sign)) {
                return Err(self.error("sign_values", "1 and -1 only", &other.to_string()));
            }
            let own = own.iter().map(|sign| if *sign < 0 { -1.0 } else { 1.0 }).collect();
            if signs.insert(width, own).is_some() {
                return Err(self.error("sign_widths", "each width once", &width.to_string()));
            }
        }
        if !rest.is_empty() {
            return Err(self.wrong_count(values.len()));
        }
        if !is_explicit && values.contains(&-1) {
            return Err(self.error("sign_values", "1 only where sign_mode is identity", "-1"));
        }
        Ok(if is_explicit { signs } else { BTreeMap::new() })
    }

    fn width(&self, width: i64, block: usize) -> Result<usize, CheckpointError> {
        let is_width =
            |width: &usize| *width > 0 && *width <= MAX_COLUMNS && width.is_multiple_of(block);
        let expected = format!("multiples of the block, {block}, up to {MAX_COLUMNS}");
        let found = usize::try_from(width).ok().filter(is_width);
        found.ok_or_else(|| self.error("sign_widths", &expected, &width.to_string()))
    }

    fn wrong_count(&self, found: usize) -> CheckpointError {
        let expected = "as many signs as the widths together";
        self.error("sign_values", expected, &format!("a list of {found} whole numbers"))
    }

    /// Whether rows of the embedding are turned back. No other table may be, and a tied head is one of
    /// them.
    fn is_table_rotated(&self, is_tied: bool) -> Result<bool, CheckpointError> {
        const NAMES: &str = "inverse_weight_names";
        let table = self.naming.table;
        let is_rotated = match self.texts(NAMES)? {
            [] => false,
            [name] if name == table => true,
            [_, .., last] | [last] => {
                return Err(self.error(NAMES, &format!("{table} once"), last));
            }
        };
        if is_tied && !is_rotated {
            let expected = format!("{table}, as the head is tied");
            return Err(self.error(NAMES, &expected, "empty"));
        }
        if is_rotated && !is_tied && !self.has(HEAD) {
            let expected =
                format!("a file with {}, or version 2 and tied_output", self.naming.head);
            return Err(self.error(NAMES, &expected, table));
        }
        Ok(is_rotated)
    }

    /// Our names of the layers with rotated inputs.
    fn layers(&self, is_tied: bool) -> Result<BTreeSet<String>, CheckpointError> {
        const NAMES: &str = "weight_names";
        let names = self.texts(NAMES)?;
        if names.is_empty() {
            return Err(self.error(NAMES, "the names of the rotated matrices", "empty"));
        }
        let mut layers = BTreeSet::new();
        for name in names {
            let is_head = name == self.naming.head;
            let layer = if is_head { Some(HEAD.to_owned()) } else { (self.naming.layer)(name) };
            let Some(layer) = layer else {
                let expected = "matrices of attention, feed-forward and head";
                return Err(self.error(NAMES, expected, name));
            };
            if !self.has(&layer) {
                return Err(self.error(NAMES, "names of tensors of this file", name));
            }
            if !layers.insert(layer) {
                return Err(self.error(NAMES, "each name once", name));
            }
        }
        if is_tied {
            layers.insert(HEAD.to_owned());
        }
        Ok(layers)
    }

    /// Every rotated input is whole blocks and has signs.
    fn check_widths(
        &self,
        block: usize,
        signs: &BTreeMap<usize, Vec<f32>>,
        embedding: bool,
        layers: &BTreeSet<String>,
    ) -> Result<(), CheckpointError> {
        let table = embedding.then_some(TABLE);
        for layer in layers.iter().map(String::as_str).chain(table) {
            let Some(info) = self.tensor(layer) else {
                continue; // a tied head
            };
            let width = columns(info)?;
            if !width.is_multiple_of(block) {
                let expected = format!("a divisor of {width}, the inputs of {}", info.name);
                return Err(self.error("block_size", &expected, &block.to_string()));
            }
            if !signs.is_empty() && !signs.contains_key(&width) {
                let expected = format!("signs for {width}, the inputs of {}", info.name);
                return Err(self.error("sign_widths", &expected, "none of this width"));
            }
        }
        Ok(())
    }

    fn texts(&self, end: &str) -> Result<&[String], CheckpointError> {
        match self.metadata.get(&key(end)) {
            None => Ok(&[]),
            Some(Value::Texts(texts)) => Ok(texts),
            Some(_) => Err(self.error(end, "a list of names", "of another type")),
        }
    }

    fn tensor(&self, layer: &str) -> Option<&TensorInfo> {
        let is_its = |info: &&TensorInfo| info.name.strip_suffix(".weight") == Some(layer);
        self.tensors.iter().find(is_its)
    }

    fn has(&self, layer: &str) -> bool {
        self.tensor(layer).is_some()
    }

    fn error(&self, end: &str, expected: &str, found: &str) -> CheckpointError {
        self.metadata.error(&key(end), expected, found)
    }
}

#[cfg(test)]
mod tests;
