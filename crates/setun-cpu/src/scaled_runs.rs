//! From integer sums of runs of columns to outputs: scales of weights and activations over lanes.

use fearless_simd::{f32x4, f32x16, i32x16, prelude::*};
use setun_ops::ternary::Scales;

use crate::{group_scratch::GroupScratch, ternary_dot::TILE_OUTPUTS};

/// Runs whose sums and scales fill a vector.
pub(crate) const RUNS: usize = 4;

/// `Σ dot_g × (t_g × w_g)` of four outputs, runs ascending, from the sums over codes in `scratch`. The
/// scales are those of a matrix of this many columns.
pub(crate) fn scaled<S: Simd>(
    simd: S,
    scratch: &GroupScratch,
    (scales, columns): (&Scales, usize),
    run: usize,
    outputs: [usize; TILE_OUTPUTS],
) -> [f32; TILE_OUTPUTS] {
    let (values, group) = match scales {
        Scales::Tensor(scale) => {
            return scaled_runs(
                simd,
                scratch,
                #[inline(always)]
                |_, _| f32x4::splat(simd, *scale),
            );
        }
        Scales::Rows(scales) => {
            let of_part = outputs.map(|output| scales[output]);
            return scaled_runs(
                simd,
                scratch,
                #[inline(always)]
                |part, _| f32x4::splat(simd, of_part[part]),
            );
        }
        Scales::ColumnGroups { columns, values } => (values, *columns),
    };
    let groups = columns.div_ceil(group);
    let rows = outputs.map(|output| &values[output * groups..][..groups]);
    if group > run {
        let at = |run_index: usize| (run_index * run / group).min(groups - 1);
        return scaled_runs(
            simd,
            scratch,
            #[inline(always)]
            |part, chunk| {
                let scales: [f32; RUNS] =
                    std::array::from_fn(|index| rows[part][at(chunk * RUNS + index)]);
                f32x4::from_slice(simd, &scales)
            },
        );
    }
    let whole = rows.map(|row| row.as_chunks::<RUNS>().0);
    let rest = rows.map(|row| {
        let rest = row.as_chunks::<RUNS>().1;
        std::array::from_fn::<f32, RUNS, _>(|index| rest.get(index).copied().unwrap_or(0.0))
    });
    scaled_runs(
        simd,
        scratch,
        #[inline(always)]
        |part, chunk| f32x4::from_slice(simd, whole[part].get(chunk).unwrap_or(&rest[part])),
    )
}

/// The same with weight scales by output of the tile and four runs.
#[inline(always)]
fn scaled_runs<S: Simd>(
    simd: S,
    scratch: &GroupScratch,
    w: impl Fn(usize, usize) -> f32x4<S>,
) -> [f32; TILE_OUTPUTS] {
    simd.vectorize(
        #[inline(always)]
        || {
            let mut acc = f32x4::splat(simd, 0.0);
            let dots = scratch.dots.as_chunks::<RUNS>().0;
            let sums = &scratch.sums.as_chunks::<RUNS>().0[..dots.len()];
            let t = &scratch.t.as_chunks::<RUNS>().0[..dots.len()];
            for chunk in 0..dots.len() {
                let t = f32x4::from_slice(simd, &t[chunk]);
                let [a, b, c, d] = transposed([
                    t * w(0, chunk),
                    t * w(1, chunk),
                    t * w(2, chunk),
                    t * w(3, chunk),
                ]);
                let scales: f32x16<S> = a.combine(b).combine(c.combine(d));
                let dots = i32x16::from_slice(simd, dots[chunk].as_flattened())
                    - i32x16::from_slice(simd, sums[chunk].as_flattened());
                let (low, high) = (f32x16::float_from(dots) * scales).split();
                let ((a, b), (c, d)) = (low.split(), high.split());
                acc = (((acc + a) + b) + c) + d;
            }
            acc.into()
        },
    )
}

/// Lane `j` of vector `i` goes to lane `i` of vector `j`.
#[inline(always)]
fn transposed<S: Simd>([a, b, c, d]: [f32x4<S>; 4]) -> [f32x4<S>; 4] {
    let [(ac_low, ac_high), (bd_low, bd_high)] =
        [(a.zip_low(c), a.zip_high(c)), (b.zip_low(d), b.zip_high(d))];
    [
        ac_low.zip_low(bd_low),
        ac_low.zip_high(bd_low),
        ac_high.zip_low(bd_high),
        ac_high.zip_high(bd_high),
    ]
}
