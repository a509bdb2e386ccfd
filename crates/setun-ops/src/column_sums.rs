//! `column_sums`: the integer sum of [`ternary_dot`](crate::ternary_dot), column by column.
//!
//! Where most activations are zero, as those that enter a down projection are, a matrix is
//! better read by columns: those of zero activations need not be read at all, and the sum is the
//! same, since an integer sum does not depend on its order.

use crate::{op::Agreement, ternary::code_at};

/// See [`Agreement`].
pub const AGREEMENT: Agreement = Agreement::Exact;

/// `sums[output] += Σ code × activation` over some columns, with codes 0..=2.
///
/// # Shapes
///
/// - `columns`: each `[outputs / 4]`, the codes of one column for all outputs, packed as
///   [`ternary`](crate::ternary) packs those of a row.
/// - `activations`: one for each column.
/// - `sums`: `[outputs]`
///
/// # Panics
///
/// If a column has fewer codes than there are sums.
pub fn column_sums(columns: &[&[u8]], activations: &[i8], sums: &mut [i32]) {
    for (column, &activation) in columns.iter().zip(activations) {
        for (output, sum) in sums.iter_mut().enumerate() {
            *sum += i32::from(code_at(column, output)) * i32::from(activation);
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::{
        ternary::{pack_row, padded_columns, row_bytes},
        ternary_dot::ternary_dot,
    };

    fn packed(codes: &[u8]) -> Vec<u8> {
        let mut packed = vec![0; row_bytes(codes.len())];
        pack_row(codes, &mut packed);
        packed
    }

    /// Codes of an output in each of some columns, and the columns' activations.
    fn layer() -> impl Strategy<Value = (Vec<Vec<u8>>, Vec<i8>)> {
        (1..150_usize, 1..20_usize).prop_flat_map(|(columns, outputs)| {
            let codes = prop::collection::vec(0..=2_u8, outputs);
            (prop::collection::vec(codes, columns), prop::collection::vec(any::<i8>(), columns))
        })
    }

    proptest! {
        #[test]
        fn equals_the_dots_of_the_rows((codes, mut activations) in layer()) {
            let columns: Vec<Vec<u8>> = codes.iter().map(|codes| packed(codes)).collect();
            let columns: Vec<&[u8]> = columns.iter().map(Vec::as_slice).collect();
            let mut sums = vec![0; codes[0].len()];
            column_sums(&columns, &activations, &mut sums);

            let of_activations: i32 = activations.iter().map(|&x| i32::from(x)).sum();
            activations.resize(padded_columns(activations.len()), 0);
            for (output, sum) in sums.into_iter().enumerate() {
                let row: Vec<u8> = codes.iter().map(|column| column[output]).collect();
                prop_assert_eq!(sum - of_activations, ternary_dot(&packed(&row), &activations));
            }
        }
    }
}
