//! Hidden rows as a screen takes them: integers of 16 bits, and what they add to a bound.

use setun_ops::{fold::LANES, screen_dot::ZERO_CODE, top_logits::MAX_LOGIT};

use super::{
    Screen,
    numbers::{MIN_ERROR, ROUND_UP, columns_to_f64, largest_magnitude, power, round, sum, to_i32},
};

/// The largest magnitude of a hidden row's integers: both planes stay within an int8.
const MAX_HIDDEN: f32 = 32_512.0;

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
        let most = largest_magnitude(x);
        if !most.is_finite() {
            return None;
        }
        let (high, low) = planes.split_at_mut(screen.columns);
        high.fill(0);
        low.fill(0);
        let scale = most / MAX_HIDDEN;
        let divisor = if scale > 0.0 { scale } else { f32::INFINITY };
        let mut total = 0;
        for (&x, (high, low)) in x.iter().zip(high.iter_mut().zip(&mut *low)) {
            let integer = to_i32(round((x / divisor).clamp(-MAX_HIDDEN, MAX_HIDDEN)));
            total += i64::from(integer);
            (*high, *low) = split(integer);
        }
        let norm = sum(x.iter().map(|&x| f64::from(x) * f64::from(x))).sqrt() * ROUND_UP;
        let error = |(&x, (&high, &low)): (&f32, (&i8, &i8))| {
            let integer = f64::from(i32::from(high) * 256 + i32::from(low));
            let error = f64::from(x) - f64::from(scale) * integer;
            error * error
        };
        let error = sum(x.iter().zip(high.iter().zip(&*low)).map(error)).sqrt() * ROUND_UP;
        // Half of the most, because rounding can enlarge a logit a little.
        if screen.largest_norm * norm > f64::from(MAX_LOGIT) / 2.0 {
            return None;
        }
        let gamma = gamma(x.len().div_ceil(LANES) + 5);
        let runs = columns_to_f64(screen.runs());
        // The sum over runs of a ternary table: a product and a sum each.
        let by_runs = if screen.runs() > 0 { self::gamma(screen.runs() + 2) } else { 0.0 };
        Some(Self {
            scale: f64::from(scale),
            zero: zero(total),
            by_error: norm * (1.0 + gamma),
            by_norm: error + gamma * norm + by_runs * (norm + error),
            underflow: (columns_to_f64(x.len()) + runs * f64::from(scale)) * (MIN_ERROR / 2.0),
        })
    }

    /// `Σ integer × integer` from the sums of both planes over codes. Exact, as all are integers
    /// below 2^53.
    #[inline(always)]
    pub(super) fn dot(&self, [high, low]: [i32; 2]) -> f64 {
        256.0 * f64::from(high) + f64::from(low) - self.zero
    }
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
