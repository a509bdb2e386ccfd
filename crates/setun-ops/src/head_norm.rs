//! `head_norm`: a root-mean-square norm over each head of a row, in place (qk-norm of Qwen3).
//!
//! Each run of `head_dim` columns is normed by itself, as [`rms_norm`](crate::rms_norm) says,
//! with one gain `[head_dim]` for all heads.

use crate::{op::Agreement, rms_norm::rms_norm_row};

/// See [`Agreement`].
pub const AGREEMENT: Agreement = Agreement::ExactOnCpu { gpu_ulp: 4 };

/// Norms the heads of one row, `[heads × head_dim]`.
///
/// # Panics
///
/// If the row is not a whole number of heads.
pub fn head_norm_row(heads: &mut [f32], gain: &[f32], eps: f32) {
    assert_eq!(heads.len() % gain.len(), 0, "whole heads");
    let mut normed = vec![0.0; gain.len()];
    for head in heads.chunks_exact_mut(gain.len()) {
        rms_norm_row(head, gain, eps, &mut normed);
        head.copy_from_slice(&normed);
    }
}
