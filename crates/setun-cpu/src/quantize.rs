//! `quantize` over lanes; defined in [`setun_ops::quantize`].

use fearless_simd::{f32x16, i32x16, prelude::*, u32x16};
use setun_ops::{
    exp::ROUND,
    op::{BufferId, Norm},
    quantize::{MAX_CODE, MIN_ABSMAX, RowScale, scales_of_row},
    ternary::padded_columns,
};

use crate::{
    lanes::{LANES, padded},
    quantized::{Quantized, RowRun},
    rms_norm::rms_norm_row,
    split::Grid,
    step::Buffers,
    ternary_dot::TernaryDot,
    walk::Walk,
};

impl<D: TernaryDot> Walk<'_, D> {
    pub(crate) fn quantize(
        &self,
        buffers: &mut Buffers,
        x: BufferId,
        norm: Option<Norm>,
        out: BufferId,
    ) {
        let (simd, rows) = (self.isa.lanes(), self.rows(out));
        buffers.write_quantized(out, |buffers, out| {
            let (x, padded) = (buffers.floats(x), padded_columns(out.width).max(1));
            let (of_row, groups) = (out.runs_of_row(), scales_of_row(out.width, out.group));
            let Quantized { group, codes, scales, sums, run, runs, .. } = out;
            let codes = Grid::new(&mut codes[..rows * padded], padded).tiles(1, padded);
            let scales = Grid::new(&mut scales[..rows * groups], groups).tiles(1, groups);
            let sums = Grid::new(&mut sums[..rows], 1).tiles(1, 1);
            let runs = Grid::new(&mut runs[..rows * of_row], of_row).tiles(1, of_row);
            let parts = (codes, scales, sums, runs);
            self.each(parts, |scratch, row, (mut codes, mut scales, mut sum, mut runs)| {
                let mut values = x.row(row);
                if let Some(norm) = norm {
                    let normed = &mut scratch.row[..values.len()];
                    let gain = self.weights.vector(norm.gain);
                    rms_norm_row(simd, values, gain, norm.eps, normed);
                    values = normed;
                }
                let (codes_row, scales) = (codes.row(0), scales.row(0));
                codes_row[values.len()..].fill(0);
                let width = group.unwrap_or(values.len()).max(1);
                let groups =
                    values.chunks(width).zip(codes_row.chunks_mut(width)).zip(&mut *scales);
                sum.row(0)[0] = groups.fold(0, |sum, ((values, codes), scale)| {
                    let found = quantize_row(simd, values, &mut codes[..values.len()]);
                    *scale = found.scale;
                    sum + found.sum
                });
                if let Some(run) = *run {
                    find_runs(simd, run, (codes.row(0), width), scales, runs.row(0));
                }
                // Padding is zero.
                self.record_nonzero(|| codes.row(0).iter().filter(|&&code| code != 0).count());
            });
        });
    }
}

/// Finds the scale and the sum of each run of `run` columns. Groups of `width` codes share a scale.
fn find_runs<S: Simd>(
    simd: S,
    run: usize,
    (codes, width): (&[i8], usize),
    scales: &[f32],
    runs: &mut [RowRun],
) {
    simd.vectorize(
        #[inline(always)]
        || {
            for (index, (codes, of_run)) in codes.chunks(run).zip(runs).enumerate() {
                let t = scales.get(index * run / width).copied().unwrap_or(0.0);
                *of_run = RowRun { t, sum: codes.iter().map(|&code| i32::from(code)).sum() };
            }
        },
    );
}

/// Lane version of [`setun_ops::quantize::quantize_row`].
pub(crate) fn quantize_row<S: Simd>(simd: S, x: &[f32], codes: &mut [i8]) -> RowScale {
    simd.vectorize(
        #[inline(always)]
        || {
            let (codes, padding) = codes.split_at_mut(x.len());
            padding.fill(0);
            let absmax = absmax(simd, x);
            if !absmax.is_finite() {
                codes.fill(0);
                return RowScale { scale: f32::NAN, sum: 0 };
            }
            let a = if absmax < MIN_ABSMAX { MIN_ABSMAX } else { absmax };
            let sum = codes_of(simd, x, MAX_CODE / a, codes);
            RowScale { scale: a / MAX_CODE, sum }
        },
    )
}

/// The largest magnitude, by bits, so that a NaN counts as larger than everything.
#[expect(clippy::disallowed_methods, reason = "a maximum of integers is the same everywhere")]
#[inline(always)]
fn absmax<S: Simd>(simd: S, x: &[f32]) -> f32 {
    let magnitude = |x: &[f32; LANES]| {
        let bits: u32x16<S> = f32x16::from_slice(simd, x).bitcast();
        bits & 0x7fff_ffff
    };
    let (chunks, rest) = x.as_chunks::<LANES>();
    let mut largest = magnitude(&padded(rest));
    for x in chunks {
        largest = largest.max(magnitude(x));
    }
    let lanes: [u32; LANES] = largest.into();
    f32::from_bits(lanes.into_iter().max().unwrap_or(0))
}

/// Rounds `x · s` and returns the sum of the codes. As `s = 127 / a` and no `|x|` exceeds `a`,
/// a product is below 127.001: what is rounded lies within ±127 without a clamp.
#[inline(always)]
fn codes_of<S: Simd>(simd: S, x: &[f32], s: f32, codes: &mut [i8]) -> i32 {
    let round = |x: &[f32; LANES]| {
        // Adding `ROUND` rounds to an integer, ties to even, and leaves it in the low bits.
        let shifted: i32x16<S> = (f32x16::from_slice(simd, x) * s + ROUND).bitcast();
        shifted - ROUND.to_bits().cast_signed()
    };
    let (chunks, rest) = x.as_chunks::<LANES>();
    let (code_chunks, rest_codes) = codes.as_chunks_mut::<LANES>();
    let mut sums = i32x16::splat(simd, 0);
    for (x, codes) in chunks.iter().zip(code_chunks) {
        let rounded = round(x);
        sums += rounded;
        *codes = to_codes(rounded.into());
    }
    let rounded = round(&padded(rest));
    sums += rounded;
    rest_codes.copy_from_slice(&to_codes(rounded.into())[..rest.len()]);
    let lanes: [i32; LANES] = sums.into();
    lanes.iter().sum()
}

#[inline(always)]
#[expect(clippy::cast_possible_truncation, reason = "integers in −127..=127")]
fn to_codes(rounded: [i32; LANES]) -> [i8; LANES] {
    rounded.map(|code| code as i8)
}
