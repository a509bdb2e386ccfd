//! `f16` to `f32` and back, which x86-64 has instructions for since before AVX2.

use std::arch::x86_64::{
    __m256i, _MM_FROUND_NO_EXC, _MM_FROUND_TO_NEAREST_INT, _mm256_cvtph_ps, _mm256_cvtps_ph,
    _mm512_cvtph_ps, _mm512_cvtps_ph,
};

use fearless_simd::{Level, f32x8, f32x16, prelude::*, u16x8, u16x16};
use setun_ops::fold::LANES;

/// To the nearest, ties to even, whatever the processor's mode is.
const NEAREST: i32 = _MM_FROUND_TO_NEAREST_INT;

/// Sixteen elements, given as bits; exact. None on a level without the instructions.
#[inline(always)]
pub(crate) fn widen_f16<S: Simd>(simd: S, bits: &[u16; LANES]) -> Option<f32x16<S>> {
    let widened = match simd.level() {
        Level::Avx512(avx512) => widen_sixteen(avx512, bits),
        Level::Avx2(avx2) => widen_eights(avx2, bits),
        _ => return None,
    };
    Some(f32x16::from_slice(simd, &widened))
}

fearless_simd::kernel!(
    #[inline]
    fn widen_sixteen(avx512: Avx512, bits: &[u16; LANES]) -> [f32; LANES] {
        let bits: __m256i = u16x16::from_slice(avx512, bits).into();
        f32x16::simd_from(avx512, _mm512_cvtph_ps(bits)).into()
    }
);

fearless_simd::kernel!(
    #[inline]
    fn widen_eights(avx2: Avx2, bits: &[u16; LANES]) -> [f32; LANES] {
        let (low, high) = bits.split_at(LANES / 2);
        let half = |bits: &[u16]| {
            let bits = u16x8::from_slice(avx2, bits).into();
            f32x8::simd_from(avx2, _mm256_cvtph_ps(bits))
        };
        half(low).combine(half(high)).into()
    }
);

/// Rounds sixteen elements to `f16`, to infinity beyond its range, and gives their bits. None on
/// a level without the instructions.
#[inline(always)]
pub(crate) fn round_f16<S: Simd>(simd: S, x: &[f32; LANES]) -> Option<u16x16<S>> {
    let rounded = match simd.level() {
        Level::Avx512(avx512) => round_sixteen(avx512, x),
        Level::Avx2(avx2) => round_eights(avx2, x),
        _ => return None,
    };
    Some(u16x16::from_slice(simd, &rounded))
}

fearless_simd::kernel!(
    #[inline]
    fn round_sixteen(avx512: Avx512, x: &[f32; LANES]) -> [u16; LANES] {
        let x = f32x16::from_slice(avx512, x).into();
        u16x16::simd_from(avx512, _mm512_cvtps_ph::<{ NEAREST | _MM_FROUND_NO_EXC }>(x)).into()
    }
);

fearless_simd::kernel!(
    #[inline]
    fn round_eights(avx2: Avx2, x: &[f32; LANES]) -> [u16; LANES] {
        let (low, high) = x.split_at(LANES / 2);
        let half = |x: &[f32]| {
            let x = f32x8::from_slice(avx2, x).into();
            u16x8::simd_from(avx2, _mm256_cvtps_ph::<NEAREST>(x))
        };
        half(low).combine(half(high)).into()
    }
);
