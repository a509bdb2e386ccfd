//! Bounds of a block of logits from the sums of its codes.

use fearless_simd::prelude::*;

use super::{
    hidden::Hidden,
    numbers::{MIN_ERROR, power, to_f32},
};

/// What a bound is enlarged by, relative to the logit and itself: more than what its evaluation
/// in `f64` and its conversion to `f32` can lose.
const BOUND_ERROR: f64 = power(-22);

/// What the middle of two bounds in `f32` has lost, relative to both: more than their roundings.
const MIDDLE_ERROR: f64 = power(-23);

/// Neighbouring tokens whose bounds are found together: as many as vectors have lanes of `f64`.
pub(crate) const BLOCK_TOKENS: usize = 8;

/// The sums of a block's rows with each plane of a hidden row.
pub(super) type BlockDots = [[i32; BLOCK_TOKENS]; 2];

/// Lower and upper bounds of the logits of a block.
pub(crate) type Bounds = [[f32; BLOCK_TOKENS]; 2];

/// What is known of a block of rows; zeros beyond the last.
#[derive(Clone, Copy, Debug, Default)]
#[repr(align(64))]
pub(super) struct BlockBounds {
    scale: [f32; BLOCK_TOKENS],
    error: [f32; BLOCK_TOKENS],  // ≥ ‖w−ŵ‖
    norm: [f32; BLOCK_TOKENS],   // ≥ ‖ŵ‖
    coarse: [f32; BLOCK_TOKENS], // ≥ ‖w−ŵ‖ of coarse codes, where there are planes
}

/// Bytes of what is known of a block.
pub(crate) const BOUNDS_BYTES: usize = size_of::<BlockBounds>();

/// What is known of a row.
#[derive(Clone, Copy)]
pub(super) struct RowBounds {
    pub(super) scale: f32,
    pub(super) error: f32,
    pub(super) norm: f32,
    pub(super) coarse: f32,
}

impl BlockBounds {
    pub(super) fn set(&mut self, index: usize, row: RowBounds) {
        self.scale[index] = row.scale;
        self.error[index] = row.error;
        self.norm[index] = row.norm;
        self.coarse[index] = row.coarse;
    }

    /// At least `‖w‖` of each row.
    pub(super) fn norms(&self) -> [f64; BLOCK_TOKENS] {
        std::array::from_fn(|row| f64::from(self.norm[row]) + f64::from(self.error[row]))
    }

    /// Bounds of the logits of a hidden row, from the sums of both planes.
    #[inline(always)]
    pub(super) fn bounds<S: Simd>(
        &self,
        simd: S,
        hidden: &Hidden,
        [high, low]: &BlockDots,
    ) -> Bounds {
        simd.vectorize(
            #[inline(always)]
            || {
                let mut bounds = [[0.0; BLOCK_TOKENS]; 2];
                for index in 0..BLOCK_TOKENS {
                    let dot = hidden.dot([high[index], low[index]]);
                    let logit = f64::from(self.scale[index]) * hidden.scale * dot;
                    let bound = self.bound(index, hidden);
                    let margin = bound + ((logit.abs() + bound) * BOUND_ERROR + MIN_ERROR);
                    bounds[0][index] = to_f32(logit - margin);
                    bounds[1][index] = to_f32(logit + margin);
                }
                bounds
            },
        )
    }

    /// The same from the sums of coarse codes.
    #[inline(always)]
    pub(super) fn coarse_bounds<S: Simd>(
        &self,
        simd: S,
        hidden: &Hidden,
        [high, low]: &BlockDots,
    ) -> Bounds {
        simd.vectorize(
            #[inline(always)]
            || {
                let mut bounds = [[0.0; BLOCK_TOKENS]; 2];
                for index in 0..BLOCK_TOKENS {
                    let dot = hidden.coarse_dot([high[index], low[index]]);
                    let logit = f64::from(self.scale[index]) * hidden.scale * dot;
                    let norm = f64::from(self.norm[index]) + f64::from(self.error[index]);
                    let bound = f64::from(self.coarse[index]) * hidden.by_coarse
                        + norm * hidden.by_norm
                        + hidden.underflow;
                    let margin = bound + ((logit.abs() + bound) * BOUND_ERROR + MIN_ERROR);
                    bounds[0][index] = to_f32(logit - margin);
                    bounds[1][index] = to_f32(logit + margin);
                }
                bounds
            },
        )
    }

    /// Bounds of one logit, from those of the coarse codes and the sums of the fine ones. In the
    /// middle of the first lies the logit of the coarse codes.
    #[inline(always)]
    pub(super) fn closer(
        &self,
        index: usize,
        hidden: &Hidden,
        dots: [i32; 2],
        coarse: [f32; 2],
    ) -> [f32; 2] {
        let [lower, upper] = coarse.map(f64::from);
        let rest = f64::from(self.scale[index]) * hidden.scale * hidden.fine_dot(dots);
        let logit = f64::midpoint(lower, upper) + rest;
        let bound = self.bound(index, hidden);
        let lost = (lower.abs() + upper.abs()) * MIDDLE_ERROR + MIN_ERROR;
        let margin = bound + lost + ((logit.abs() + bound) * BOUND_ERROR + MIN_ERROR);
        [to_f32(logit - margin), to_f32(logit + margin)]
    }

    #[inline(always)]
    fn bound(&self, index: usize, hidden: &Hidden) -> f64 {
        f64::from(self.error[index]) * hidden.by_error
            + f64::from(self.norm[index]) * hidden.by_norm
            + hidden.underflow
    }
}
