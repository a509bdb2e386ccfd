//! `rope_append`: rotary position embedding, then the key and value enter the cache.
//!
//! Pairs are half-split, `(i, i + head_dim / 2)`, as transformers has them:
//!
//! ```text
//! y[i]       = x[i] × cos − x[i + d/2] × sin
//! y[i + d/2] = x[i + d/2] × cos + x[i] × sin         cos, sin at [position, i]
//! ```
//!
//! The tables are made once on the host and handed to every backend; no backend computes a
//! sine. Keys (rotated, at their absolute position) and values are rounded to the cache's
//! element; attention reads them only from there, the current token's too.

use crate::{error::OpsError, op::Agreement};

/// See [`Agreement`].
pub const AGREEMENT: Agreement = Agreement::ExactOnCpu { gpu_ulp: 2 };

/// Cosines and sines `[positions, head_dim / 2]`.
#[derive(Clone, Debug, PartialEq)]
pub struct RopeTable {
    half: usize,
    cos: Vec<f32>,
    sin: Vec<f32>,
}

impl RopeTable {
    /// Tables for positions `0..positions` and inverse frequencies `[head_dim / 2]`: the `f32`
    /// product `position × inverse_frequency`, whose cosine and sine are taken in `f64` and
    /// rounded.
    ///
    /// # Errors
    ///
    /// If there is no frequency, an angle is not finite, or there is no memory for the table.
    pub fn new(positions: usize, inverse_frequencies: &[f32]) -> Result<Self, OpsError> {
        Self::scaled(positions, inverse_frequencies, 1.0)
    }

    /// Tables as [`new`](Self::new) makes them, each value times a factor, which `YaRN` has. A
    /// product of a query and a key grows by its square.
    ///
    /// # Errors
    ///
    /// As [`new`](Self::new).
    pub fn scaled(
        positions: usize,
        inverse_frequencies: &[f32],
        factor: f32,
    ) -> Result<Self, OpsError> {
        let half = inverse_frequencies.len();
        if half == 0 {
            return Err(OpsError::Length { what: "RoPE frequencies", expected: 1, found: 0 });
        }
        let last = to_f32(positions.saturating_sub(1));
        if let Some(index) = inverse_frequencies.iter().position(|f| !(last * f).is_finite()) {
            let found = inverse_frequencies[index];
            return Err(OpsError::NotFinite { what: "RoPE frequency", index, found });
        }
        let len = positions.saturating_mul(half);
        let bytes = len.saturating_mul(2 * size_of::<f32>());
        let out_of_memory = |_| OpsError::OutOfMemory { what: "the RoPE table", bytes };
        let (mut cos, mut sin) = (vec![], vec![]);
        cos.try_reserve_exact(len).map_err(out_of_memory)?;
        sin.try_reserve_exact(len).map_err(out_of_memory)?;
        for position in 0..positions {
            for frequency in inverse_frequencies {
                let (s, c) = libm::sincos(f64::from(to_f32(position) * frequency));
                sin.push(round(s) * factor);
                cos.push(round(c) * factor);
            }
        }
        Ok(Self { half, cos, sin })
    }

    /// A table `[positions, half]` that was made before.
    ///
    /// # Errors
    ///
    /// If it is no whole number of positions, one or more, or has another number of cosines than of
    /// sines.
    pub fn from_values(half: usize, cos: Vec<f32>, sin: Vec<f32>) -> Result<Self, OpsError> {
        if half == 0 || cos.is_empty() || !cos.len().is_multiple_of(half) {
            let what = "cosines of a RoPE table, a multiple";
            return Err(OpsError::Length { what, expected: half, found: cos.len() });
        }
        if sin.len() != cos.len() {
            let what = "sines of a RoPE table";
            return Err(OpsError::Length { what, expected: cos.len(), found: sin.len() });
        }
        Ok(Self { half, cos, sin })
    }

    /// Positions in the table.
    #[must_use]
    pub fn positions(&self) -> usize {
        self.cos.len() / self.half
    }

    /// Width of the heads it rotates.
    #[must_use]
    pub fn head_dim(&self) -> usize {
        2 * self.half
    }

    /// All cosines, `[positions, head_dim / 2]`.
    #[must_use]
    pub fn cos(&self) -> &[f32] {
        &self.cos
    }

    /// All sines, `[positions, head_dim / 2]`.
    #[must_use]
    pub fn sin(&self) -> &[f32] {
        &self.sin
    }

    /// Cosines and sines of one position, `[head_dim / 2]` each.
    ///
    /// # Panics
    ///
    /// If the position is not in the table.
    #[must_use]
    pub fn at(&self, position: usize) -> (&[f32], &[f32]) {
        let range = position * self.half..(position + 1) * self.half;
        (&self.cos[range.clone()], &self.sin[range])
    }
}

/// Rotates one head `[head_dim]` in place.
///
/// # Panics
///
/// If `head` is not twice as long as `cos` and `sin`.
pub fn rotate_head(head: &mut [f32], cos: &[f32], sin: &[f32]) {
    assert!(head.len() == 2 * cos.len() && cos.len() == sin.len(), "a head and its table");
    let (first, second) = head.split_at_mut(cos.len());
    for i in 0..cos.len() {
        let (x, y) = (first[i], second[i]);
        first[i] = x * cos[i] - y * sin[i];
        second[i] = y * cos[i] + x * sin[i];
    }
}

#[expect(clippy::cast_precision_loss, reason = "as transformers: positions are floats")]
fn to_f32(position: usize) -> f32 {
    position as f32
}

#[expect(clippy::cast_possible_truncation, reason = "rounds to the nearest f32")]
fn round(x: f64) -> f32 {
    x as f32
}
