//! Numbers of a proof: rounded up, or exact.

use setun_ops::exp::ROUND;

/// Norms in `f64` are enlarged by this, far more than their sums can have lost.
pub(super) const ROUND_UP: f64 = 1.0 + power(-30);

/// More than a conversion to a subnormal `f32` can lose: 2^−148.
pub(super) const MIN_ERROR: f64 = power(-148);

/// 2 to the power of an exponent.
pub(super) const fn power(exponent: i64) -> f64 {
    f64::from_bits((1023 + exponent).cast_unsigned() << 52)
}

/// By bits, so that a NaN counts as larger than everything.
#[inline(always)]
pub(super) fn largest_magnitude(row: &[f32]) -> f32 {
    f32::from_bits(row.iter().map(|x| x.to_bits() & 0x7fff_ffff).max().unwrap_or(0))
}

/// To the nearest integer, for magnitudes below 2^22.
#[inline(always)]
pub(super) fn round(x: f32) -> f32 {
    (x + ROUND) - ROUND
}

/// A sum in eight lanes, which compilers turn into vectors. The order does not matter: it is
/// rounded up.
pub(super) fn sum(terms: impl Iterator<Item = f64>) -> f64 {
    let mut lanes = [0.0; 8];
    for (index, term) in terms.enumerate() {
        lanes[index % 8] += term;
    }
    lanes.iter().sum()
}

/// The [`sum`] of a term for each pair of elements, whose loop over lanes compilers see.
#[inline(always)]
pub(super) fn sum_pairs(a: &[f32], b: &[u8], term: impl Fn(f32, u8) -> f64) -> f64 {
    const LANES: usize = 8;
    let mut lanes = [0.0; LANES];
    let ((a, a_rest), (b, b_rest)) = (a.as_chunks::<LANES>(), b.as_chunks::<LANES>());
    for (a, b) in a.iter().zip(b) {
        for (lane, sum) in lanes.iter_mut().enumerate() {
            *sum += term(a[lane], b[lane]);
        }
    }
    for (sum, (a, b)) in lanes.iter_mut().zip(a_rest.iter().zip(b_rest)) {
        *sum += term(*a, *b);
    }
    lanes.iter().sum()
}

/// To `f32`, never down.
#[inline(always)]
pub(super) fn up(x: f64) -> f32 {
    let nearest = to_f32(x);
    if f64::from(nearest) < x { nearest.next_up() } else { nearest }
}

#[inline(always)]
#[expect(clippy::cast_possible_truncation, reason = "to the nearest, as the bounds allow for")]
pub(super) fn to_f32(x: f64) -> f32 {
    x as f32
}

#[inline(always)]
#[expect(clippy::cast_possible_truncation, reason = "an integer of at most 16 bits")]
pub(super) fn to_i32(x: f32) -> i32 {
    x as i32
}

#[expect(clippy::cast_precision_loss, reason = "at most 132,096")]
pub(super) fn columns_to_f64(columns: usize) -> f64 {
    columns as f64
}
