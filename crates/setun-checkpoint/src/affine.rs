//! Matrices as MLX stores them: codes of two bits, with a scale and a bias for each group of a
//! row's columns.
//!
//! A word of the codes, `U32 [rows, columns / 16]`, holds sixteen neighbours of a row, low bits
//! first. A weight is `scale × code + bias`, with `scales` and `biases` `[rows, columns / group]`.
//! Such a matrix is ternary where each weight is 0 or ± the scale of its group: mostly
//! `bias = −scale`, and no code is 3.

use std::sync::atomic::{AtomicUsize, Ordering};

use setun_ops::{
    aligned::Aligned,
    ternary::{BLOCK_BYTES, PLANE_COLUMNS, Scales, ZERO_WEIGHTS, row_bytes},
};

use crate::{
    blocks::{bad_code, set_neighbours},
    dense,
    dtype::{Dtype, FLOATS},
    error::CheckpointError,
    scales,
    side_by_side::{RUN_ROWS, side_by_side},
    tensor::{Tensor, TensorData, TensorInfo, check_finite},
};

/// Codes in a word.
const WORD_CODES: usize = 16;

/// Codes in a byte.
const BYTE_CODES: usize = 4;

/// What a code stands for whose weight is not ternary.
const NOT_TERNARY: u8 = 3;

/// A code of [`setun_ops::ternary`] for a weight of 0.
const ZERO: u8 = ZERO_WEIGHTS & 3;

/// The three tensors of a matrix, of which types and shapes are checked.
#[derive(Clone, Copy, Debug)]
pub struct Affine<'a> {
    codes: &'a Tensor,
    scales: &'a Tensor,
    biases: &'a Tensor,
    rows: usize,
    columns: usize,
    group: usize,
}

/// Checks the headers of a matrix `[rows, columns]` whose groups have `group` columns.
///
/// # Errors
///
/// If the groups do not divide the columns, or a type or a shape is another.
pub fn check(
    codes: &TensorInfo,
    scales: &TensorInfo,
    biases: &TensorInfo,
    (rows, columns): (usize, usize),
    group: usize,
) -> Result<(), CheckpointError> {
    if group == 0 || !group.is_multiple_of(PLANE_COLUMNS) || !columns.is_multiple_of(group) {
        return Err(CheckpointError::Groups { tensor: codes.name.clone(), columns, group });
    }
    codes.expect_dtype(&[Dtype::U32])?;
    codes.expect_shape(&[rows, columns / WORD_CODES])?;
    for numbers in [scales, biases] {
        numbers.expect_dtype(&FLOATS)?;
        numbers.expect_shape(&[rows, columns / group])?;
    }
    Ok(())
}

impl<'a> Affine<'a> {
    /// # Errors
    ///
    /// As [`check`].
    pub fn new(
        codes: &'a Tensor,
        scales: &'a Tensor,
        biases: &'a Tensor,
        shape: (usize, usize),
        group: usize,
    ) -> Result<Self, CheckpointError> {
        check(&codes.info, &scales.info, &biases.info, shape, group)?;
        let (rows, columns) = shape;
        Ok(Self { codes, scales, biases, rows, columns, group })
    }

    /// Codes `[rows, row_bytes(columns)]` in the layout of [`setun_ops::ternary`], padding
    /// included, and as few scales as say the same as those stored.
    ///
    /// # Errors
    ///
    /// If a scale or a bias is not finite, or a weight is neither 0 nor ± the scale of its group.
    pub fn unpack(&self) -> Result<(Aligned<u8>, Scales), CheckpointError> {
        let (codes, magnitudes) = self.split()?;
        let groups = self.columns / self.group;
        Ok((codes, scales::fewest(&magnitudes, groups, self.group, self.columns)))
    }

    /// Codes, and the magnitude of each group; 0 where all of it is zero.
    fn split(&self) -> Result<(Aligned<u8>, Vec<f32>), CheckpointError> {
        let TensorData::Bytes(stored) = &self.codes.data else {
            return Err(self.codes.info.rank("bytes"));
        };
        check_finite(self.scales)?;
        check_finite(self.biases)?;
        let mut magnitudes = dense::numbers(self.scales)?; // scales before they are met
        let biases = dense::numbers(self.biases)?;
        let (columns, groups) = (self.columns, self.columns / self.group);
        let mut codes = self.codes.info.zeroed(self.rows, row_bytes(columns))?;
        let first_bad = AtomicUsize::new(usize::MAX);
        let bytes = stored.chunks(RUN_ROWS * (columns / BYTE_CODES).max(1));
        let numbers = magnitudes.chunks_mut(RUN_ROWS * groups.max(1));
        let numbers = numbers.zip(biases.chunks(RUN_ROWS * groups.max(1)));
        let out = codes.chunks_mut(RUN_ROWS * row_bytes(columns).max(1));
        let runs = bytes.zip(numbers).zip(out).enumerate().collect();
        side_by_side(runs, |(run, ((bytes, (scales, biases)), out))| {
            if let Some(bad) = self.split_run(bytes, scales, biases, out) {
                first_bad.fetch_min(run * RUN_ROWS * columns + bad, Ordering::Relaxed);
            }
        });
        match first_bad.into_inner() {
            usize::MAX => Ok((codes, magnitudes)),
            bad => Err(self.codes.info.not_ternary(bad / columns, bad % columns)),
        }
    }

    /// Some rows: scales become magnitudes. The place of the first weight that is not ternary.
    fn split_run(
        &self,
        bytes: &[u8],
        scales: &mut [f32],
        biases: &[f32],
        out: &mut [u8],
    ) -> Option<usize> {
        let groups = self.columns / self.group;
        let mut neighbours = vec![ZERO_WEIGHTS; row_bytes(self.columns)];
        let rows = bytes.chunks_exact(self.columns / BYTE_CODES);
        let numbers = scales.chunks_exact_mut(groups).zip(biases.chunks_exact(groups));
        let out = out.chunks_exact_mut(row_bytes(self.columns));
        for (row, ((bytes, (scales, biases)), out)) in rows.zip(numbers).zip(out).enumerate() {
            let of_groups = bytes.chunks_exact(self.group / BYTE_CODES);
            let of_groups = of_groups.zip(neighbours.chunks_exact_mut(self.group / BYTE_CODES));
            for ((bytes, codes), (scale, bias)) in of_groups.zip(scales.iter_mut().zip(biases)) {
                translate(bytes, *scale, *bias, codes);
                let is_zero = codes.iter().fold(0, |all, codes| all | codes ^ ZERO_WEIGHTS) == 0;
                *scale = if is_zero { 0.0 } else { scale.abs() };
            }
            let blocks = neighbours.as_chunks().0.iter().zip(out.chunks_exact_mut(BLOCK_BYTES));
            blocks.for_each(|(neighbours, out)| set_neighbours(neighbours, out));
            if let Some(column) = bad_code(out) {
                return Some(row * self.columns + column);
            }
        }
        None
    }
}

/// What the four codes of a group stand for: the code of weight `w` where
/// `scale × code + bias = w × scale`, compared without rounding.
fn meanings(scale: f32, bias: f32) -> [u8; 4] {
    let (scale, bias) = (f64::from(scale), f64::from(bias));
    [0.0, 1.0, 2.0, 3.0].map(|code| {
        let is = |weight: f64| bias == (weight - code) * scale;
        match scale < 0.0 {
            _ if is(0.0) => ZERO,
            negative if is(1.0) => ZERO + 1 - 2 * u8::from(negative),
            negative if is(-1.0) => ZERO - 1 + 2 * u8::from(negative),
            _ => NOT_TERNARY,
        }
    })
}

/// Codes of a group as the codes that they stand for, four a byte.
fn translate(bytes: &[u8], scale: f32, bias: f32, codes: &mut [u8]) {
    if scale > 0.0 && bias == -scale {
        codes.copy_from_slice(bytes); // as they mostly are
        return;
    }
    let meanings = meanings(scale, bias);
    for (byte, codes) in bytes.iter().zip(codes) {
        let code = |place: u8| usize::from(byte >> (2 * place) & 3);
        *codes = (0..4).fold(0, |all, place| all | meanings[code(place)] << (2 * place));
    }
}

#[cfg(test)]
mod tests;
