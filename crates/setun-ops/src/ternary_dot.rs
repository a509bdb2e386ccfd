//! `ternary_dot`: the integer sum that everything else rests on.
//!
//! `dot = Σ (code[i] − 1) × activation[i]`, exactly. An integer sum does not depend on its
//! order, so every instruction set, tile and thread count gives the same `i32`.

use std::ops::Range;

use crate::{op::Agreement, ternary::code_at};

/// See [`Agreement`].
pub const AGREEMENT: Agreement = Agreement::Exact;

/// Sums `weight × activation` over one packed row.
///
/// It cannot overflow within [`MAX_COLUMNS`](crate::ternary::MAX_COLUMNS): `128 × 132,096`
/// stays below 2^25.
///
/// # Shapes
///
/// - `codes`: `[row_bytes]`, packed as [`ternary`](crate::ternary) says.
/// - `activations`: `[4 × row_bytes]`, any int8; zero beyond the matrix's columns.
///
/// # Panics
///
/// If there is not one activation for each code.
#[must_use]
pub fn ternary_dot(codes: &[u8], activations: &[i8]) -> i32 {
    assert_eq!(codes.len() * 4, activations.len(), "one activation for each code");
    ternary_dot_range(codes, activations, 0..activations.len())
}

/// [`ternary_dot`] over a range of columns: one column group.
///
/// # Panics
///
/// If the range exceeds the row.
#[must_use]
pub fn ternary_dot_range(codes: &[u8], activations: &[i8], columns: Range<usize>) -> i32 {
    columns
        .map(|column| {
            let weight = i32::from(code_at(codes, column)) - 1;
            weight * i32::from(activations[column])
        })
        .sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ternary::{pack_row, padded_columns, row_bytes};
    use proptest::{collection::vec, prelude::*};

    proptest! {
        #[test]
        fn equals_the_sum_over_unpacked_weights(
            pairs in vec((0..=2u8, any::<i8>()), 1..600)
        ) {
            let codes: Vec<u8> = pairs.iter().map(|pair| pair.0).collect();
            let mut packed = vec![0; row_bytes(codes.len())];
            pack_row(&codes, &mut packed);
            let mut activations: Vec<i8> = pairs.iter().map(|pair| pair.1).collect();
            activations.resize(padded_columns(codes.len()), 0);
            let expected: i32 =
                pairs.iter().map(|&(code, x)| (i32::from(code) - 1) * i32::from(x)).sum();
            prop_assert_eq!(ternary_dot(&packed, &activations), expected);
        }
    }
}
