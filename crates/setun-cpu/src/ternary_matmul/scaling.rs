//! From integer sums to outputs: the scales of weights and activations, and a bias.

use std::ops::Range;

use fearless_simd::{f32x16, i32x16, prelude::*};
use setun_ops::ternary::Scales;

use super::RUN;
use crate::{
    lanes::{LANES, padded},
    quantized::Quantized,
    ternary_panel::to_f32,
};

/// What turns the integer sums of a layer into its outputs.
pub(super) struct Scaling<'a> {
    pub(super) x: &'a Quantized,
    pub(super) scales: &'a Scales,
    pub(super) bias: Option<(&'a [f32], bool)>, // values, before the scale
}

impl Scaling<'_> {
    /// From sums over codes to neighbouring outputs of a row.
    pub(super) fn run<S: Simd>(
        &self,
        simd: S,
        dots: &[i32; RUN],
        outputs: Range<usize>,
        row: usize,
        y: &mut [f32; RUN],
    ) {
        let end = outputs.end;
        simd.vectorize(
            #[inline(always)]
            || {
                let chunks = dots.as_chunks().0.iter().zip(y.as_chunks_mut::<LANES>().0);
                for (first, (dots, y)) in outputs.step_by(LANES).zip(chunks) {
                    let run = first..end.min(first + LANES);
                    self.outputs(simd, dots, run, row).store_slice(y);
                }
            },
        );
    }

    /// From a sum over codes to an output.
    #[inline]
    pub(super) fn output(&self, code_dot: i32, output: usize, row: usize) -> f32 {
        let dot = to_f32(code_dot - self.x.sums[row]);
        let t = self.x.scales[row];
        let weight_scale = match self.scales {
            Scales::Tensor(scale) => *scale,
            Scales::Rows(scales) => scales[output],
            Scales::ColumnGroups { .. } => unreachable!("grouped scales have their own way"),
        };
        match self.bias {
            Some((bias, true)) => (dot * t + bias[output]) * weight_scale,
            Some((bias, false)) => dot * (t * weight_scale) + bias[output],
            None => dot * (t * weight_scale),
        }
    }

    /// Up to sixteen neighbouring outputs by groups, with their bias. Beyond the last is anything.
    #[inline(always)]
    pub(super) fn with_bias<S: Simd>(
        &self,
        simd: S,
        sums: &[f32; LANES],
        outputs: Range<usize>,
    ) -> f32x16<S> {
        let sums = f32x16::from_slice(simd, sums);
        match self.bias {
            Some((bias, _)) => sums + f32x16::from_slice(simd, &padded(&bias[outputs])),
            None => sums,
        }
    }

    /// [`output`](Self::output) of up to sixteen neighbouring outputs. Beyond the last is anything.
    #[inline(always)]
    pub(super) fn outputs<S: Simd>(
        &self,
        simd: S,
        sums: &[i32; LANES],
        outputs: Range<usize>,
        row: usize,
    ) -> f32x16<S> {
        let of_outputs =
            |values: &[f32]| f32x16::from_slice(simd, &padded(&values[outputs.clone()]));
        let dots = f32x16::float_from(i32x16::from_slice(simd, sums) - self.x.sums[row]);
        let t = f32x16::splat(simd, self.x.scales[row]);
        let weight_scales = match self.scales {
            Scales::Tensor(scale) => f32x16::splat(simd, *scale),
            Scales::Rows(scales) => of_outputs(scales),
            Scales::ColumnGroups { .. } => unreachable!("grouped scales have their own way"),
        };
        match self.bias {
            Some((bias, true)) => (dots * t + of_outputs(bias)) * weight_scales,
            Some((bias, false)) => dots * (t * weight_scales) + of_outputs(bias),
            None => dots * (t * weight_scales),
        }
    }
}
