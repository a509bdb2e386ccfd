//! The rotation of inputs that weights were trained for.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value, json};
use setun_ops::ternary::MAX_COLUMNS;

use super::{ModelConfig, PRISM_MODEL_TYPE, unsupported};
use crate::{
    dtype::Dtype,
    error::CheckpointError,
    files,
    json::Fields,
    tensor::{self, TensorInfo},
};

/// A rotation of the inputs of matrices: each column is multiplied by its sign, then each block of
/// columns by a Sylvester Hadamard matrix divided by the root of its size.
#[derive(Clone, Debug, PartialEq)]
pub struct Hadamard {
    /// Columns of a block, a power of two that divides the width of each rotated input.
    pub block: usize,
    /// Signs by width of the input, each +1 or -1; none where all are +1.
    pub signs: BTreeMap<usize, Vec<f32>>,
    /// Names of the linear layers with rotated inputs, `lm_head` among them where it has one.
    pub layers: BTreeSet<String>,
    /// Whether rows of the embedding are rotated: they are turned back before their first use.
    pub embedding: bool,
}

/// The field of `config.json` that holds a rotation. Its form is setun's own.
pub(crate) const KEY: &str = "hadamard_config";

const BLOCK: &str = "block_size";
const SIGNS: &str = "signs";
const LAYERS: &str = "layers";
const EMBEDDING: &str = "embedding";

/// Reads what [`Hadamard::to_json`] writes.
pub(super) fn parse(fields: &Fields<'_>) -> Result<Option<Hadamard>, CheckpointError> {
    if fields.is_text(KEY) {
        // The name of a file in packs of MLX, which the reader of folders reads.
        return match fields.text("model_type")? {
            Some(PRISM_MODEL_TYPE) => Ok(None),
            _ => Err(unsupported(fields, "the field", KEY, "weights that are not rotated")),
        };
    }
    let fields = fields.object(KEY)?;
    if !fields.is_present() {
        return Ok(None);
    }
    let is_known = |key: &&str| [BLOCK, SIGNS, LAYERS, EMBEDDING].contains(key);
    if let Some(key) = fields.keys().find(|key| !is_known(key)) {
        let supported = "block_size, signs, layers, embedding";
        return Err(unsupported(&fields, "the field of `hadamard_config`", key, supported));
    }
    let block = fields.size(BLOCK, MAX_COLUMNS)?.filter(|block| block.is_power_of_two());
    let block = block.ok_or_else(|| fields.absent(BLOCK, "a power of two"))?;
    let layers = fields.texts(LAYERS)?.unwrap_or_default();
    let layers: BTreeSet<_> = layers.into_iter().map(str::to_owned).collect();
    let signs = fields.object(SIGNS)?;
    let signs = signs.keys().map(|width| parse_signs(&signs, width, block));
    let signs = signs.collect::<Result<_, _>>()?;
    let embedding = fields.flag(EMBEDDING)?.unwrap_or(false);
    Ok(Some(Hadamard { block, signs, layers, embedding }))
}

fn parse_signs(
    fields: &Fields<'_>,
    key: &str,
    block: usize,
) -> Result<(usize, Vec<f32>), CheckpointError> {
    let width = key
        .parse()
        .ok()
        .filter(|&width: &usize| width > 0 && width <= MAX_COLUMNS && width.is_multiple_of(block));
    let expected = format!("a width that is a multiple of {block}");
    let width = width.ok_or_else(|| fields.error(key, &expected, key))?;
    let text = fields.text(key)?.unwrap_or_default();
    let sign = |letter| match letter {
        '+' => Some(1.0),
        '-' => Some(-1.0),
        _ => None,
    };
    let signs = text.chars().map(sign).collect::<Option<Vec<_>>>();
    let signs = signs.filter(|signs| signs.len() == width);
    let expected = format!("{width} letters, each + or -");
    Ok((width, signs.ok_or_else(|| fields.error(key, &expected, text))?))
}

impl ModelConfig {
    /// Every rotated layer is there, and its inputs are whole blocks and have signs.
    pub(crate) fn check_rotation(&self, tensors: &[TensorInfo]) -> Result<(), CheckpointError> {
        let Some(hadamard) = &self.hadamard else {
            return Ok(());
        };
        if hadamard.embedding {
            hadamard.check_width(TABLE, self.hidden_size)?;
        }
        for name in &hadamard.layers {
            let columns = if name == HEAD && self.tied_head {
                self.hidden_size
            } else {
                columns(tensor::find(tensors, &format!("{name}.weight"))?)?
            };
            hadamard.check_width(name, columns)?;
        }
        Ok(())
    }
}

/// The layer that makes logits, which may be the table of embeddings.
pub(crate) const HEAD: &str = "lm_head";

/// The table of embeddings.
pub(crate) const TABLE: &str = "model.embed_tokens";

/// Inputs of a matrix, whatever its form.
pub(crate) fn columns(info: &TensorInfo) -> Result<usize, CheckpointError> {
    let (_, columns) = info.expect_matrix()?;
    Ok(if info.dtype == Dtype::U32 { columns.saturating_mul(16) } else { columns })
}

impl Hadamard {
    /// The rotation as a field of `config.json`.
    pub(crate) fn to_json(&self) -> Value {
        let letter = |sign: &f32| if *sign < 0.0 { '-' } else { '+' };
        let letters = |signs: &Vec<f32>| json!(signs.iter().map(letter).collect::<String>());
        let signs = self.signs.iter().map(|(width, signs)| (width.to_string(), letters(signs)));
        json!({
            BLOCK: self.block,
            SIGNS: signs.collect::<Map<_, _>>(),
            LAYERS: self.layers,
            EMBEDDING: self.embedding,
        })
    }

    /// Whether a layer has rotated inputs, or the table rotated rows.
    pub(crate) fn is_rotated(&self, name: &str) -> bool {
        self.layers.contains(name) || self.embedding && name == TABLE
    }

    fn check_width(&self, name: &str, width: usize) -> Result<(), CheckpointError> {
        let is_signed = self.signs.is_empty() || self.signs.contains_key(&width);
        let expected = if !width.is_multiple_of(self.block) {
            format!("blocks of {} columns that divide the inputs of {name}", self.block)
        } else if is_signed {
            return Ok(());
        } else {
            format!("signs for the inputs of {name}")
        };
        Err(CheckpointError::field(files::CONFIG, KEY, expected, format!("{width} columns")))
    }
}
