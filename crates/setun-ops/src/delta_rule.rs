//! `delta_rule`: one step of the gated delta rule on the state of a head.
//!
//! ```text
//! S[i][j] = S[i][j] × λ
//! u[j]    = Σ S[i][j] × k[i]             i ascending, from +0
//! δ[j]    = (v[j] − u[j]) × β
//! S[i][j] = S[i][j] + k[i] × δ[j]
//! o[j]    = Σ S[i][j] × q[i]             i ascending, from +0
//! ```
//!
//! Columns `j` are independent, so any of them may be computed together or apart.

/// Updates `state` `[key_dim, value_dim]` by a query, a key `[key_dim]` and a value `[value_dim]`, with `(λ, β)`,
/// and writes `o` `[value_dim]`.
///
/// # Panics
///
/// If the lengths disagree.
pub fn delta_rule(
    state: &mut [f32],
    (q, k, v): (&[f32], &[f32], &[f32]),
    (decay, beta): (f32, f32),
    o: &mut [f32],
) {
    assert!(q.len() == k.len() && v.len() == o.len() && state.len() == k.len() * v.len(), "a head");
    let mut deltas = vec![0.0; v.len()];
    for (row, k) in state.chunks_exact_mut(v.len()).zip(k) {
        for (s, u) in row.iter_mut().zip(&mut deltas) {
            *s *= decay;
            *u += *s * k;
        }
    }
    deltas.iter_mut().zip(v).for_each(|(u, v)| *u = (v - *u) * beta);
    o.fill(0.0);
    for (row, (k, q)) in state.chunks_exact_mut(v.len()).zip(k.iter().zip(q)) {
        for (s, (delta, o)) in row.iter_mut().zip(deltas.iter().zip(&mut *o)) {
            *s += k * delta;
            *o += *s * q;
        }
    }
}
