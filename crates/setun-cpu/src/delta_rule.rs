//! `delta_rule` over lanes; defined in [`setun_ops::delta_rule`].
//!
//! Columns of a state are independent: some vectors of them pass all rows of the state twice, once for `u` and once
//! for the update and `o`.

use fearless_simd::{f32x16, prelude::*};

use crate::lanes::{LANES, has_many_registers};

/// A head's query and key, decay and β of a row.
#[derive(Clone, Copy)]
pub(crate) struct HeadRow<'a> {
    pub(crate) q: &'a [f32],
    pub(crate) k: &'a [f32],
    pub(crate) decay: f32,
    pub(crate) beta: f32,
}

/// Updates a state `[key_dim, v.len()]`, and writes `o`.
pub(crate) fn delta_rule<S: Simd>(
    simd: S,
    state: &mut [f32],
    row: HeadRow<'_>,
    v: &[f32],
    o: &mut [f32],
) {
    simd.vectorize(
        #[inline(always)]
        || {
            let width = v.len();
            let mut first = 0;
            if has_many_registers(simd) {
                while first + 8 * LANES <= width {
                    columns::<S, 8>(simd, state, (first, width), row, v, o);
                    first += 8 * LANES;
                }
            }
            while first + 2 * LANES <= width {
                columns::<S, 2>(simd, state, (first, width), row, v, o);
                first += 2 * LANES;
            }
            while first + LANES <= width {
                columns::<S, 1>(simd, state, (first, width), row, v, o);
                first += LANES;
            }
            (first..width).for_each(|column| one_column(state, (column, width), row, v, o));
        },
    );
}

/// `N` vectors of columns from `first` on.
#[inline(always)]
fn columns<S: Simd, const N: usize>(
    simd: S,
    state: &mut [f32],
    (first, width): (usize, usize),
    HeadRow { q, k, decay, beta }: HeadRow<'_>,
    v: &[f32],
    o: &mut [f32],
) {
    let mut u = [f32x16::splat(simd, 0.0); N];
    for (state, &k) in state.chunks_exact(width).zip(k) {
        let (parts, _) = state[first..first + N * LANES].as_chunks::<LANES>();
        for (u, part) in u.iter_mut().zip(parts) {
            *u += f32x16::from_slice(simd, part) * decay * k;
        }
    }
    let (values, _) = v[first..first + N * LANES].as_chunks::<LANES>();
    for (u, v) in u.iter_mut().zip(values) {
        *u = (f32x16::from_slice(simd, v) - *u) * beta;
    }
    let mut sums = [f32x16::splat(simd, 0.0); N];
    for (state, (&k, &q)) in state.chunks_exact_mut(width).zip(k.iter().zip(q)) {
        let (parts, _) = state[first..first + N * LANES].as_chunks_mut::<LANES>();
        for ((sum, delta), part) in sums.iter_mut().zip(&u).zip(parts) {
            let updated = f32x16::from_slice(simd, part) * decay + *delta * k;
            updated.store_slice(part);
            *sum += updated * q;
        }
    }
    let (out, _) = o[first..first + N * LANES].as_chunks_mut::<LANES>();
    out.iter_mut().zip(sums).for_each(|(out, sum)| sum.store_slice(out));
}

fn one_column(
    state: &mut [f32],
    (column, width): (usize, usize),
    HeadRow { q, k, decay, beta }: HeadRow<'_>,
    v: &[f32],
    o: &mut [f32],
) {
    let mut u = 0.0;
    for (state, k) in state.chunks_exact(width).zip(k) {
        u += state[column] * decay * k;
    }
    let delta = (v[column] - u) * beta;
    let mut sum = 0.0;
    for (state, (k, q)) in state.chunks_exact_mut(width).zip(k.iter().zip(q)) {
        state[column] = state[column] * decay + delta * k;
        sum += state[column] * q;
    }
    o[column] = sum;
}
