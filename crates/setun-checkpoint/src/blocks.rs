//! Ternary matrices of every stored form that has its scales with it.
//!
//! What a block of each type holds is in the modules within; here rows of blocks become packed
//! rows of [`setun_ops::ternary`], and their scales as few as say the same. A scale of zero makes
//! its weights zero whatever their codes are, and any scale suits those.
//!
//! Types in base 3 have 243 meaningful bytes; the other 13 are read as every program does that
//! multiplies to decode them, so no byte of them is an error. A code of two bits may be 3, which
//! is none of a ternary weight.

pub(crate) mod encode;
mod i2_s;
mod ik;
mod one_bit;
mod rows;
mod table;
mod tq1_0;
mod two_bits;

pub use i2_s::encode as encode_i2_s;

use setun_ops::{TernaryMatrix, aligned::Aligned, ternary::Scales, weight::ScaleKind};

use crate::{
    base3, dtype::Dtype, error::CheckpointError, fake_quantized, scaled_codes, tensor::Tensor,
};
use encode::{BlockFormat, rows_of_blocks, zero_scale};
use rows::RowFormat;
pub(crate) use rows::{bad_code, set_neighbours};
pub use table::TABLES;
pub(crate) use table::floats;

/// The types that [`unpack`] reads.
pub const TYPES: [Dtype; 16] = [
    Dtype::F32,
    Dtype::F16,
    Dtype::Bf16,
    Dtype::I2S,
    Dtype::I2SNarrow,
    Dtype::Tq1_0,
    Dtype::Tq2_0,
    Dtype::Q2_0,
    Dtype::Q2_0Wide,
    Dtype::Pq2_0,
    Dtype::Ptq1_0,
    Dtype::Q1_0,
    Dtype::Iq1Bn,
    Dtype::Iq2Bn,
    Dtype::Base3,
    Dtype::ScaledCodes,
];

/// Codes `[rows, row_bytes(columns)]` in the layout of [`setun_ops::ternary`], padding included,
/// and as few scales as say the same as those stored.
///
/// # Errors
///
/// If the tensor is no matrix of one of [`TYPES`], a weight is not ternary, or a scale is not
/// finite.
pub fn unpack(tensor: &Tensor) -> Result<(Aligned<u8>, Scales), CheckpointError> {
    match (tensor.info.dtype, form(tensor.info.dtype)) {
        (Dtype::F32 | Dtype::F16 | Dtype::Bf16, _) => fake_quantized::unpack(tensor),
        (Dtype::Base3, _) => Ok((base3::unpack(tensor)?, Scales::Tensor(1.0))),
        (Dtype::ScaledCodes | Dtype::ScaledTable(_), _) => scaled_codes::split(tensor),
        (_, Some(form)) => rows::unpack(tensor, form),
        (found, None) => {
            let (tensor, expected) = (tensor.info.name.clone(), TYPES.to_vec());
            Err(CheckpointError::Dtype { tensor, expected, found })
        }
    }
}

/// As [`unpack`], with the scales that the type has, whatever they say: of a table it must be
/// known before its data how it is scaled. See [`table_scales`].
pub(crate) fn unpack_table(tensor: &Tensor) -> Result<(Aligned<u8>, Scales), CheckpointError> {
    match form(tensor.info.dtype) {
        Some(form) if form.tail == 0 => rows::unpack_as_stored(tensor, form),
        _ => unpack(tensor),
    }
}

/// How a table of a ternary type is scaled, if it can be one.
#[must_use]
pub fn table_scales(dtype: Dtype) -> Option<ScaleKind> {
    match (dtype, form(dtype)) {
        (Dtype::I2S | Dtype::I2SNarrow, _) => Some(ScaleKind::Tensor),
        (Dtype::ScaledTable(columns), _) => Some(ScaleKind::ColumnGroups(columns as usize)),
        (_, Some(form)) => Some(form.group.map_or(ScaleKind::Rows, ScaleKind::ColumnGroups)),
        (_, None) => None,
    }
}

/// The bytes of a matrix in a type whose blocks have each a scale in `f16`.
///
/// # Errors
///
/// If `dtype` is none that is written so, the columns are no whole blocks, or a scale is not one
/// that an `f16` can hold, or is of groups that are no multiple of a block; `name` is for messages.
pub fn encode(
    name: &str,
    matrix: &TernaryMatrix,
    dtype: Dtype,
) -> Result<Vec<u8>, CheckpointError> {
    match block_format(dtype) {
        Some(format) => encode::blocks(name, dtype, matrix, format),
        None => Err(CheckpointError::Unwritable {
            format: "GGUF",
            what: format!("`{name}` as {dtype}"),
            way_out: "write .setun",
        }),
    }
}

/// The encoding of a type's blocks, for types that [`encode`] writes.
pub(crate) fn block_format(dtype: Dtype) -> Option<&'static BlockFormat> {
    match dtype {
        Dtype::Tq1_0 => Some(&tq1_0::TQ1_0),
        Dtype::Tq2_0 => Some(&two_bits::BLOCKS_OF_256),
        Dtype::Q2_0 => Some(&two_bits::BLOCKS_OF_64),
        Dtype::Q2_0Wide | Dtype::Pq2_0 => Some(&two_bits::BLOCKS_OF_128),
        Dtype::Ptq1_0 => Some(&tq1_0::PTQ1_0),
        _ => None,
    }
}

fn form(dtype: Dtype) -> Option<&'static RowFormat> {
    match dtype {
        Dtype::I2S => Some(&i2_s::WIDE),
        Dtype::I2SNarrow => Some(&i2_s::NARROW),
        Dtype::Tq1_0 => Some(&tq1_0::FORM),
        Dtype::Tq2_0 => Some(&two_bits::TQ2_0),
        Dtype::Q2_0 => Some(&two_bits::Q2_0),
        Dtype::Q2_0Wide | Dtype::Pq2_0 => Some(&two_bits::Q2_0_WIDE),
        Dtype::Ptq1_0 => Some(&tq1_0::HALF),
        Dtype::Q1_0 => Some(&one_bit::Q1_0),
        Dtype::Iq1Bn => Some(&ik::IQ1_BN),
        Dtype::Iq2Bn => Some(&ik::IQ2_BN),
        _ => None,
    }
}
