//! The one order of every float sum.
//!
//! Element `i` goes to lane `i mod 16`, ascending; then lanes fold 8, 4, 2, 1. Every
//! accumulator starts at +0.0, so it is never −0, and a padded or masked element (±0) changes
//! no bit. Nothing is fused or reassociated, so a vector unit of any width that divides 16
//! gives the same bits.

use std::ops::AddAssign;

/// Number of lanes of a fold.
pub const LANES: usize = 16;

/// Sums `terms` in the order of the [module](self).
#[must_use]
pub fn fold16(terms: impl IntoIterator<Item = f32>) -> f32 {
    let mut lanes = [0.0; LANES];
    for (i, term) in terms.into_iter().enumerate() {
        lanes[i % LANES] += term;
    }
    fold_lanes(lanes)
}

/// Sums products `a[i] × b[i]` in the order of the [module](self).
///
/// # Panics
///
/// If the lengths differ.
#[must_use]
pub fn fold16_dot(a: &[f32], b: &[f32]) -> f32 {
    assert_eq!(a.len(), b.len(), "factors of a dot product");
    fold16(a.iter().zip(b).map(|(a, b)| a * b))
}

/// The last part of a fold: lanes 8 apart, then 4, 2, 1.
#[must_use]
pub fn fold_lanes<T: Copy + AddAssign>(mut lanes: [T; LANES]) -> T {
    let mut width = LANES / 2;
    while width > 0 {
        for i in 0..width {
            lanes[i] += lanes[i + width];
        }
        width /= 2;
    }
    lanes[0]
}

/// [`fold16`] in `f64`: for the mean of a master weight matrix, once, at load.
#[must_use]
pub fn fold16_f64(terms: impl IntoIterator<Item = f64>) -> f64 {
    let mut lanes = [0.0; LANES];
    for (i, term) in terms.into_iter().enumerate() {
        lanes[i % LANES] += term;
    }
    fold_lanes(lanes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_order_is_by_lanes() {
        // 1 is lost beside 2^24 in lane 0, but not in a lane of its own.
        let big = 16_777_216.0;
        let mut terms = [0.0; 17];
        (terms[0], terms[16]) = (big, 1.0);
        assert_eq!(fold16(terms).to_bits(), big.to_bits());
        terms = [0.0; 17];
        (terms[0], terms[1], terms[9]) = (big, 1.0, 1.0);
        assert_eq!(fold16(terms).to_bits(), (big + 2.0).to_bits());
    }

    #[test]
    fn sums_are_never_negative_zero() {
        assert_eq!(fold16([-0.0; 40]).to_bits(), 0);
        assert_eq!(fold16([]).to_bits(), 0);
    }
}
