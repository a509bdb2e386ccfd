//! `embed`: the rows of the embedding table, widened to `f32`.
//!
//! `out[row] = table[token[row]]`, without scaling; exact for float tables, `code × scale` for
//! int8 and ternary ones. See [`DenseMatrix::widen_row`](crate::DenseMatrix::widen_row).

use crate::{dense::DenseMatrix, op::Agreement};

/// See [`Agreement`].
pub const AGREEMENT: Agreement = Agreement::Exact;

/// Looks up one token.
///
/// # Panics
///
/// If the token is not in the table or `out` is not `[hidden]`.
pub fn embed_row(table: &DenseMatrix, token: u32, out: &mut [f32]) {
    table.widen_row(token as usize, out);
}
