//! Hidden rows as a screen takes them: integers of 16 bits, and what they add to a bound.

use setun_ops::{fold::LANES, screen_dot::ZERO_CODE, top_logits::MAX_LOGIT};

use super::{
    Screen,
    numbers::{MIN_ERROR, ROUND_UP, columns_to_f64, largest_magnitude, power, round, sum, to_i32},
};
use crate::quantized::RowRun;

/// The largest magnitude of a hidden row's integers: both planes stay within an int8.
const MAX_HIDDEN: f32 = 32_512.0;

/// The largest magnitude of the codes of a hidden row that has a scale for each run.
const MAX_CODE: f32 = 127.0;

/// A bound of a run's sum, 2^14, and of the underflows of its two products.
const MAX_RUN_DOT: f64 = power(15);

/// The rounding of `f32`, 2^−24.
const UNIT: f64 = power(-24);

/// A hidden row made ready for a screen.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Hidden {
    pub(super) scale: f64,     // t
    pub(super) zero: f64,      // what codes add that are `ZERO_CODE` higher than their integers
    pub(super) by_error: f64,  // what a row's error adds to the bound
    pub(super) by_norm: f64,   // what a row's norm adds
    pub(super) underflow: f64, // what is added in any case
}

impl Hidden {
    /// Writes the planes of `x`, twice `[screen.columns()]`. None where `x` is not finite, or
    /// logits could be too large to be ranked.
    pub(crate) fn new(screen: &Screen, x: &[f32], planes: &mut [i8]) -> Option<Self> {
        let norm = proven_norm(screen, x)?;
        let (high, low) = planes.split_at_mut(screen.columns);
        high.fill(0);
        low.fill(0);
        let scale = largest_magnitude(x) / MAX_HIDDEN;
        let divisor = if scale > 0.0 { scale } else { f32::INFINITY };
        let mut total = 0;
        for (&x, (high, low)) in x.iter().zip(high.iter_mut().zip(&mut *low)) {
            let integer = to_i32(round((x / divisor).clamp(-MAX_HIDDEN, MAX_HIDDEN)));
            total += i64::from(integer);
            (*high, *low) = split(integer);
        }
        let error = |(&x, (&high, &low)): (&f32, (&i8, &i8))| {
            let integer = f64::from(i32::from(high) * 256 + i32::from(low));
            let error = f64::from(x) - f64::from(scale) * integer;
            error * error
        };
        let error = sum(x.iter().zip(high.iter().zip(&*low)).map(error)).sqrt() * ROUND_UP;
        let gamma = gamma(x.len().div_ceil(LANES) + 5);
        Some(Self {
            scale: f64::from(scale),
            zero: zero(total),
            by_error: norm * (1.0 + gamma),
            by_norm: error + gamma * norm,
            underflow: columns_to_f64(x.len()) * (MIN_ERROR / 2.0),
        })
    }

    /// Writes the codes of `x`, `[screen.columns()]`, and the scale and the sum of each run,
    /// `[screen.runs()]`, for the screen of a ternary table. None as in [`new`](Self::new).
    pub(crate) fn by_runs(
        screen: &Screen,
        x: &[f32],
        codes: &mut [i8],
        runs: &mut [RowRun],
    ) -> Option<Self> {
        let norm = proven_norm(screen, x)?;
        codes.fill(0);
        runs.fill(RowRun::default());
        let mut errors = 0.0;
        let parts = x.chunks(screen.run).zip(codes.chunks_mut(screen.run));
        for ((x, codes), run) in parts.zip(&mut *runs) {
            run.t = largest_magnitude(x) / MAX_CODE;
            let divisor = if run.t > 0.0 { run.t } else { f32::INFINITY };
            for (&x, code) in x.iter().zip(codes) {
                let integer = to_i32(round((x / divisor).clamp(-MAX_CODE, MAX_CODE)));
                (*code, run.sum) = (split(integer).1, run.sum + integer);
                let error = f64::from(x) - f64::from(run.t) * f64::from(integer);
                errors += error * error;
            }
        }
        let error = errors.sqrt() * ROUND_UP;
        // A run meets a product of scales, one with its sum, and the sum over runs.
        let [by_row, by_runs] = [x.len().div_ceil(LANES) + 5, runs.len() + 2].map(gamma);
        let underflows = columns_to_f64(x.len()) + columns_to_f64(runs.len()) * MAX_RUN_DOT;
        Some(Self {
            by_norm: error + by_row * norm + by_runs * (norm + error),
            underflow: underflows * (MIN_ERROR / 2.0),
            ..Self::default()
        })
    }

    /// `Σ integer × integer` from the sums of both planes over codes. Exact, as all are integers
    /// below 2^53.
    #[inline(always)]
    pub(super) fn dot(&self, [high, low]: [i32; 2]) -> f64 {
        256.0 * f64::from(high) + f64::from(low) - self.zero
    }
}

/// The norm of `x`, rounded up. None where `x` is not finite, or logits could be too large to be ranked.
fn proven_norm(screen: &Screen, x: &[f32]) -> Option<f64> {
    let norm = sum(x.iter().map(|&x| f64::from(x) * f64::from(x))).sqrt() * ROUND_UP;
    // Half of the most, because rounding can enlarge a logit a little.
    let is_proven = norm.is_finite() && screen.largest_norm * norm <= f64::from(MAX_LOGIT) / 2.0;
    is_proven.then_some(norm)
}

/// What a sum over codes has too much, from the sum of a hidden row's integers.
#[expect(clippy::cast_precision_loss, reason = "below 64 × 32,512 × 132,096 < 2^53")]
pub(super) fn zero(sum: i64) -> f64 {
    (i64::from(ZERO_CODE) * sum) as f64
}

/// `n u / (1 − n u)` for `n` roundings. A product meets on its way into a fold its own, those of its
/// lane, and four between lanes.
fn gamma(roundings: usize) -> f64 {
    let roundings = columns_to_f64(roundings) * UNIT;
    roundings / (1.0 - roundings) * ROUND_UP
}

/// The two planes of an integer within ±32,512.
#[expect(clippy::cast_possible_truncation, reason = "both lie in −128..=127")]
pub(super) fn split(integer: i32) -> (i8, i8) {
    let high = (integer + 128) >> 8;
    (high as i8, (integer - 256 * high) as i8)
}
