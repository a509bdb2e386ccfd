//! From integer sums of runs of columns to outputs: scales of weights and activations over lanes.

use fearless_simd::{f32x4, f32x16, i32x16, prelude::*};
use setun_ops::ternary::Scales;

use crate::{
    group_scratch::GroupScratch,
    ternary_dot::{CodeDots, TILE_OUTPUTS},
};

/// Runs whose sums and scales fill a vector.
pub(crate) const RUNS: usize = 4;

/// `Σ dot_g × (t_g × w_g)` of four outputs, runs ascending, from the sums over codes in `scratch`. The
/// scales are those of a matrix of this many columns.
#[inline]
pub(crate) fn scaled<S: Simd>(
    simd: S,
    scratch: &GroupScratch,
    (scales, columns): (&Scales, usize),
    run: usize,
    outputs: [usize; TILE_OUTPUTS],
) -> [f32; TILE_OUTPUTS] {
    match scales {
        Scales::Tensor(scale) => scaled_rows(simd, scratch, [*scale; TILE_OUTPUTS]),
        Scales::Rows(scales) => scaled_rows(simd, scratch, outputs.map(|output| scales[output])),
        Scales::ColumnGroups { columns: group, values } => {
            let groups = columns.div_ceil(*group);
            let mut rows: [&[f32]; TILE_OUTPUTS] = [&[]; TILE_OUTPUTS];
            for part in 0..TILE_OUTPUTS {
                rows[part] = &values[outputs[part] * groups..][..groups];
            }
            if *group > run {
                scaled_wide_groups(simd, scratch, rows, group / run)
            } else {
                scaled_groups(simd, scratch, rows)
            }
        }
    }
}

/// The same with a weight scale for each output.
fn scaled_rows<S: Simd>(
    simd: S,
    scratch: &GroupScratch,
    rows: [f32; TILE_OUTPUTS],
) -> [f32; TILE_OUTPUTS] {
    simd.vectorize(
        #[inline(always)]
        || {
            let w = f32x16::block_splat(f32x4::from_slice(simd, &rows));
            Runs::new(scratch).add_all(simd, f32x4::splat(simd, 0.0), |_| w).into()
        },
    )
}

/// The same with a weight scale for each run.
fn scaled_groups<S: Simd>(
    simd: S,
    scratch: &GroupScratch,
    rows: [&[f32]; TILE_OUTPUTS],
) -> [f32; TILE_OUTPUTS] {
    simd.vectorize(
        #[inline(always)]
        || {
            let [(a, a_rest), (b, b_rest), (c, c_rest), (d, d_rest)] = [
                rows[0].as_chunks(),
                rows[1].as_chunks(),
                rows[2].as_chunks(),
                rows[3].as_chunks(),
            ];
            let (whole, rest) = Runs::new(scratch).split_at(a.len());
            let len = whole.dots.len();
            let [a, b, c, d] = [&a[..len], &b[..len], &c[..len], &d[..len]];
            let acc = whole.add_all(
                simd,
                f32x4::splat(simd, 0.0),
                #[inline(always)]
                |chunk| transposed(simd, [&a[chunk], &b[chunk], &c[chunk], &d[chunk]]),
            );
            if rest.dots.is_empty() {
                return acc.into();
            }
            let [a, b, c, d] = [padded(a_rest), padded(b_rest), padded(c_rest), padded(d_rest)];
            rest.add_all(
                simd,
                acc,
                #[inline(always)]
                |_| transposed(simd, [&a, &b, &c, &d]),
            )
            .into()
        },
    )
}

/// The same with a weight scale for this many runs.
fn scaled_wide_groups<S: Simd>(
    simd: S,
    scratch: &GroupScratch,
    rows: [&[f32]; TILE_OUTPUTS],
    runs: usize,
) -> [f32; TILE_OUTPUTS] {
    let groups = rows[0].len();
    let rows = [&rows[0][..groups], &rows[1][..groups], &rows[2][..groups], &rows[3][..groups]];
    simd.vectorize(
        #[inline(always)]
        || {
            let (all, zero) = (Runs::new(scratch), f32x4::splat(simd, 0.0));
            if runs.is_multiple_of(RUNS) {
                let chunks = runs / RUNS;
                return all
                    .add_all(
                        simd,
                        zero,
                        #[inline(always)]
                        |chunk| {
                            let of_group = of_group(rows, chunk / chunks);
                            f32x16::block_splat(f32x4::from_slice(simd, &of_group))
                        },
                    )
                    .into();
            }
            all.add_all(
                simd,
                zero,
                #[inline(always)]
                |chunk| {
                    let mut scales = [[0.0; TILE_OUTPUTS]; RUNS];
                    for (run, scales) in (chunk * RUNS..).zip(&mut scales) {
                        *scales = of_group(rows, run / runs);
                    }
                    f32x16::from_slice(simd, scales.as_flattened())
                },
            )
            .into()
        },
    )
}

/// The weight scales of a group of four rows. Groups after the last repeat it.
#[inline(always)]
fn of_group([a, b, c, d]: [&[f32]; TILE_OUTPUTS], group: usize) -> [f32; TILE_OUTPUTS] {
    let group = group.min(a.len() - 1);
    [a[group], b[group], c[group], d[group]]
}

/// Sums and scales of activations, four runs a vector.
struct Runs<'a> {
    dots: &'a [[CodeDots; RUNS]],
    sums: &'a [[CodeDots; RUNS]],
    t: &'a [[[f32; TILE_OUTPUTS]; RUNS]],
}

impl<'a> Runs<'a> {
    #[inline(always)]
    fn new(scratch: &'a GroupScratch) -> Self {
        let dots = scratch.dots.as_chunks().0;
        let sums = &scratch.sums.as_chunks().0[..dots.len()];
        Self { dots, sums, t: &scratch.t.as_chunks().0[..dots.len()] }
    }

    /// Splits the vectors at an index, at most at their end.
    #[inline(always)]
    fn split_at(&self, at: usize) -> (Self, Self) {
        let at = at.min(self.dots.len());
        let (dots, rest_dots) = self.dots.split_at(at);
        let (sums, rest_sums) = self.sums.split_at(at);
        let (t, rest_t) = self.t.split_at(at);
        (Self { dots, sums, t }, Self { dots: rest_dots, sums: rest_sums, t: rest_t })
    }

    /// Adds the products of all runs, with the weight scales of each vector.
    #[inline(always)]
    fn add_all<S: Simd>(
        &self,
        simd: S,
        mut acc: f32x4<S>,
        w: impl Fn(usize) -> f32x16<S>,
    ) -> f32x4<S> {
        let (dots, sums, t) =
            (self.dots, &self.sums[..self.dots.len()], &self.t[..self.dots.len()]);
        for chunk in 0..dots.len() {
            let scales = f32x16::from_slice(simd, t[chunk].as_flattened()) * w(chunk);
            let dots = i32x16::from_slice(simd, dots[chunk].as_flattened())
                - i32x16::from_slice(simd, sums[chunk].as_flattened());
            let (low, high) = (f32x16::float_from(dots) * scales).split();
            let ((a, b), (c, d)) = (low.split(), high.split());
            acc = (((acc + a) + b) + c) + d;
        }
        acc
    }
}

/// Up to four scales, followed by zeros.
#[inline(always)]
fn padded(scales: &[f32]) -> [f32; RUNS] {
    let mut padded = [0.0; RUNS];
    padded[..scales.len()].copy_from_slice(scales);
    padded
}

/// Lane `j` of row `i` goes to lane `i` of quarter `j`.
#[inline(always)]
fn transposed<S: Simd>(simd: S, [a, b, c, d]: [&[f32; RUNS]; TILE_OUTPUTS]) -> f32x16<S> {
    let ab = f32x4::from_slice(simd, a).combine(f32x4::from_slice(simd, b));
    let cd = f32x4::from_slice(simd, c).combine(f32x4::from_slice(simd, d));
    let (ac, bd) = (ab.zip_low(cd), ab.zip_high(cd));
    ac.zip_low(bd).combine(ac.zip_high(bd))
}
