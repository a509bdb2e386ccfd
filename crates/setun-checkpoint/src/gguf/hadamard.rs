//! `prism.hadamard.*`: the rotation of the inputs of matrices, in its versions 1 and 2.
//!
//! These keys alone decide whether a model rotates. A value that is not known here would mean another
//! computation, so it is refused.

use std::collections::{BTreeMap, BTreeSet};

use setun_ops::ternary::MAX_COLUMNS;

use super::{
    config::HYBRID,
    metadata::{Metadata, Value},
    names,
};
use crate::{
    config::{HEAD, Hadamard, TABLE},
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
const ARCHITECTURES: [&str; 3] = ["llama", "qwen3", HYBRID];

/// Parts of layers whose inputs may be rotated.
const ROTATED: [&str; 10] = [
    "attn_q",
    "attn_k",
    "attn_v",
    "attn_qkv",
    "attn_gate",
    "attn_output",
    "ffn_gate",
    "ffn_up",
    "ffn_down",
    "ssm_out",
];

/// What the keys say.
pub(super) struct Rotation {
    pub(super) hadamard: Hadamard,
    /// Whether columns of the output matrices of delta nets were left in transformers' order of heads.
    pub(super) is_output_grouped: bool,
}

/// The error for an output matrix that is not rotated, beside the flag that speaks of rotated ones.
pub(super) fn unclear_order(file: &str, layer: usize) -> CheckpointError {
    let expected = format!("blk.{layer}.ssm_out.weight among prism.hadamard.weight_names");
    CheckpointError::field(file, key("gdn_v_grouped"), expected, "true")
}

/// The rotation of a file's weights, if it has one. `tensors` have our names.
pub(super) fn read(
    metadata: &Metadata,
    tensors: &[TensorInfo],
) -> Result<Option<Rotation>, CheckpointError> {
    let keys = Keys { metadata, tensors };
    let ends: Vec<_> = metadata.values.keys().filter_map(|key| key.strip_prefix(PREFIX)).collect();
    if ends.is_empty() {
        return Ok(None);
    }
    let architecture = metadata.text("general.architecture")?.unwrap_or_default();
    if !ARCHITECTURES.contains(&architecture) {
        let what = "rotated weights of architecture";
        return Err(keys.unsupported(what, architecture, "llama, qwen3, qwen35"));
    }
    let is_tied = keys.check_version()?;
    if let Some(unknown) = ends.into_iter().find(|end| !KEYS.contains(end)) {
        return Err(keys.unsupported("the key", &key(unknown), "the keys of versions 1 and 2"));
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
    Ok(Some(Rotation { hadamard, is_output_grouped }))
}

fn key(end: &str) -> String {
    format!("{PREFIX}{end}")
}

struct Keys<'a> {
    metadata: &'a Metadata,
    tensors: &'a [TensorInfo],
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
            return Err(self.unsupported("prism.hadamard.version", &found, "1, 2"));
        }
        let tied = self.metadata.flag(&key("tied_output"))?.unwrap_or(false);
        if tied != (version == 2) {
            let expected = format!("{} in version {version}", version == 2);
            return Err(self.error("tied_output", &expected, &tied.to_string()));
        }
        let has_head = self.has(HEAD);
        if tied && has_head {
            return Err(self.error("tied_output", "no tensor output.weight beside it", "true"));
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
        Err(self.unsupported(what, found, expected))
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
                return Err(self.unsupported(what, found, "explicit, identity"));
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
        let names = self.texts(NAMES)?;
        let is_rotated = match names {
            [] => false,
            [name] if name == "token_embd.weight" => true,
            [other, ..] if other != "token_embd.weight" => {
                return Err(self.error(NAMES, "token_embd.weight", other));
            }
            _ => return Err(self.error(NAMES, "token_embd.weight once", "several names")),
        };
        if is_tied && !is_rotated {
            return Err(self.error(NAMES, "token_embd.weight, as the head is tied", "empty"));
        }
        if is_rotated && !is_tied && !self.has(HEAD) {
            let expected = "a file with output.weight, or version 2 and tied_output";
            return Err(self.error(NAMES, expected, "token_embd.weight"));
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
            if !is_rotatable(name) {
                let expected = "matrices of attention, feed-forward and head";
                return Err(self.error(NAMES, expected, name));
            }
            let ours = names::ours(name, true);
            let layer = ours.strip_suffix(".weight").filter(|layer| self.has(layer));
            let Some(layer) = layer else {
                return Err(self.error(NAMES, "names of tensors of this file", name));
            };
            if !layers.insert(layer.to_owned()) {
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
            let (_, width) = info.expect_matrix()?;
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

    fn unsupported(
        &self,
        what: &'static str,
        found: &str,
        supported: &'static str,
    ) -> CheckpointError {
        let (file, found) = (self.metadata.file.clone(), found.to_owned());
        CheckpointError::UnsupportedModel { file, what, found, supported }
    }
}

fn is_rotatable(name: &str) -> bool {
    let of_layer = || {
        let (layer, part) = name.strip_prefix("blk.")?.split_once('.')?;
        layer.parse::<u32>().ok()?;
        ROTATED.contains(&part.strip_suffix(".weight")?).then_some(())
    };
    name == "output.weight" || of_layer().is_some()
}

#[cfg(test)]
mod tests;
