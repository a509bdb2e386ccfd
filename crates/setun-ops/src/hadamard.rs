//! `hadamard`: signs and Walsh–Hadamard matrices over blocks of columns, in place.
//!
//! ```text
//! forward:  y = H (s ⊙ x)           inverse:  y = s ⊙ (H x)
//! H[r][c] = (−1)^popcount(r & c) / sqrt(block), for each block of columns by itself
//! ```
//!
//! Sums and differences of pairs `1, 2, 4, … block / 2` apart, in this order, then one product with
//! `1 / sqrt(block)`. H is its own inverse up to rounding.

use crate::op::Agreement;

/// See [`Agreement`].
pub const AGREEMENT: Agreement = Agreement::ExactOnCpu { gpu_ulp: 4 };

/// Smallest and largest block.
pub const BLOCKS: std::ops::RangeInclusive<usize> = 64..=4096;

/// Whether blocks may have this many columns.
#[must_use]
pub fn is_block(columns: usize) -> bool {
    columns.is_power_of_two() && BLOCKS.contains(&columns)
}

/// Rotates a row, whose length is a multiple of the block.
///
/// # Panics
///
/// If it is not, or there are not as many signs.
pub fn hadamard_row(x: &mut [f32], signs: Option<&[f32]>, block: usize, is_inverse: bool) {
    let sign = |x: &mut [f32]| {
        if let Some(signs) = signs {
            assert_eq!(x.len(), signs.len(), "a sign a column");
            x.iter_mut().zip(signs).for_each(|(x, sign)| *x *= sign);
        }
    };
    if !is_inverse {
        sign(x);
    }
    assert!(x.len().is_multiple_of(block), "whole blocks");
    x.chunks_exact_mut(block).for_each(hadamard_block);
    if is_inverse {
        sign(x);
    }
}

fn hadamard_block(x: &mut [f32]) {
    let mut distance = 1;
    while distance < x.len() {
        for pairs in x.chunks_exact_mut(2 * distance) {
            let (low, high) = pairs.split_at_mut(distance);
            for (a, b) in low.iter_mut().zip(high) {
                (*a, *b) = (*a + *b, *a - *b);
            }
        }
        distance *= 2;
    }
    let scale = scale(x.len());
    for x in x {
        *x *= scale;
    }
}

/// `1 / sqrt(block)`
#[must_use]
#[expect(clippy::cast_precision_loss, reason = "blocks are short")]
pub fn scale(block: usize) -> f32 {
    1.0 / (block as f32).sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Sums by the matrix, in `f64`.
    #[test]
    fn rows_are_multiplied_by_the_matrix() {
        let x: Vec<f32> = (0u8..128).map(|i| f32::from(i % 13) - 5.5).collect();
        let signs: Vec<f32> = (0u8..128).map(|i| if i % 3 == 0 { -1.0 } else { 1.0 }).collect();
        let mut y = x.clone();
        hadamard_row(&mut y, Some(&signs), 64, false);
        for (column, y) in y.iter().enumerate() {
            let first = column / 64 * 64;
            let term = |c: usize| {
                let sign = if ((column - first) & c).count_ones() % 2 == 0 { 1.0 } else { -1.0 };
                sign * f64::from(x[first + c] * signs[first + c]) / 8.0
            };
            let expected: f64 = (0..64).map(term).sum();
            assert!((f64::from(*y) - expected).abs() < 1e-4, "{y} {expected}");
        }
        hadamard_row(&mut y, Some(&signs), 64, true);
        assert!(x.iter().zip(&y).all(|(x, y)| (x - y).abs() < 1e-5));
    }
}
