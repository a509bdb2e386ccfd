//! `head`: logits of a hidden row.
//!
//! `logit = fold16(x · row)`, the row widened exactly from its stored type (a ternary one as
//! `weight × scale`); for an int8 table `scale × fold16(x · codes)`. Activations are not
//! quantized here.

use crate::{
    dense::{DenseMatrix, DenseValues},
    fold::{fold16, fold16_dot},
    op::Agreement,
};

/// See [`Agreement`].
pub const AGREEMENT: Agreement = Agreement::ExactOnCpu { gpu_ulp: 16 };

/// The logit of one token. `scratch` is `[hidden]`.
///
/// # Panics
///
/// If the token is not in the table or a length differs from its columns.
#[must_use]
pub fn head_logit(table: &DenseMatrix, token: usize, x: &[f32], scratch: &mut [f32]) -> f32 {
    if let DenseValues::Int8Rows { codes, scales } = table.values() {
        let codes = &codes[token * table.columns()..][..table.columns()];
        return scales[token] * fold16(x.iter().zip(codes).map(|(x, &code)| x * f32::from(code)));
    }
    table.widen_row(token, scratch);
    fold16_dot(x, scratch)
}
