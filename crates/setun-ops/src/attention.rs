//! `attention`: causal softmax attention over the cache, in spans of fixed positions.
//!
//! For a query head `q` at position `p` and all `j ≤ p` of its sequence:
//!
//! ```text
//! score_j = (fold16(q · k_j) × t_j) × (1 / sqrt(head_dim))
//! m       = max_j score_j                                    exact in any order
//! p_j     = exp(score_j − m)
//! span b, positions 64·b ..:  Z_b = fold16 of p_j, lane j mod 16
//!                             O_b[d] = Σ (p_j × t_j) × v_j[d], j ascending, from +0
//! Z = Σ Z_b,  O = Σ O_b       b ascending, from +0
//! y[d] = O[d] / Z
//! ```
//!
//! `t_j` is the scale of an int8 cache vector (its own for keys and for values), and 1
//! otherwise. As spans lie at absolute positions and nothing is rescaled on the way, any
//! thread may compute any span, and any chunking of a prompt gives the same bits.

use crate::{
    exp::exp,
    fold::{fold16, fold16_dot},
    op::Agreement,
};

/// See [`Agreement`].
pub const AGREEMENT: Agreement = Agreement::ExactOnCpu { gpu_ulp: 64 };

/// Positions of a span.
pub const SPAN: usize = 64;

/// Keys and values of one KV head of one sequence.
pub trait HeadCache {
    /// Widens the key at `position` into `out` `[head_dim]` and returns its scale, or 1.
    fn key(&self, position: usize, out: &mut [f32]) -> f32;
    /// Widens the value at `position` into `out` `[head_dim]` and returns its scale, or 1.
    fn value(&self, position: usize, out: &mut [f32]) -> f32;
}

/// Attention of one query head over positions `0..=position`. `q` and `y` are `[head_dim]`.
///
/// # Panics
///
/// If `q` and `y` differ in length.
pub fn attention_head(q: &[f32], position: usize, cache: &impl HeadCache, y: &mut [f32]) {
    assert_eq!(q.len(), y.len(), "query and result");
    let scores = scores(q, position, cache);
    let max = scores.iter().copied().fold(f32::NEG_INFINITY, maximum);
    let weights: Vec<f32> = scores.iter().map(|score| exp(score - max)).collect();

    let mut total = 0.0;
    y.fill(0.0);
    let mut value = vec![0.0; y.len()];
    for (span, weights) in weights.chunks(SPAN).enumerate() {
        total += fold16(weights.iter().copied());
        let mut sums = vec![0.0; y.len()];
        for (offset, weight) in weights.iter().enumerate() {
            let scale = cache.value(span * SPAN + offset, &mut value);
            let weight = weight * scale;
            for (sum, value) in sums.iter_mut().zip(&value) {
                *sum += weight * value;
            }
        }
        for (y, sum) in y.iter_mut().zip(&sums) {
            *y += sum;
        }
    }
    for y in y {
        *y /= total;
    }
}

fn scores(q: &[f32], position: usize, cache: &impl HeadCache) -> Vec<f32> {
    let inverse_sqrt = inverse_sqrt(q.len());
    let mut key = vec![0.0; q.len()];
    (0..=position)
        .map(|j| {
            let scale = cache.key(j, &mut key);
            fold16_dot(q, &key) * scale * inverse_sqrt
        })
        .collect()
}

/// The greater of two scores; a NaN wins, so that it shows.
#[must_use]
pub fn maximum(a: f32, b: f32) -> f32 {
    if a.is_nan() || a > b { a } else { b }
}

/// `1 / sqrt(head_dim)`
#[must_use]
#[expect(clippy::cast_precision_loss, reason = "heads are narrow")]
pub fn inverse_sqrt(head_dim: usize) -> f32 {
    1.0 / (head_dim as f32).sqrt()
}
