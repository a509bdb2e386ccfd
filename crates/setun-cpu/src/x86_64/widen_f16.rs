//! `f16` to `f32`, which x86-64 has instructions for since before AVX2; exact.

use std::arch::x86_64::{__m256i, _mm256_cvtph_ps, _mm512_cvtph_ps};

use fearless_simd::{Level, f32x8, f32x16, prelude::*, u16x8, u16x16};

use crate::lanes::LANES;

/// Sixteen elements, given as bits. None on a level without the instructions.
#[inline(always)]
pub(crate) fn widen_f16<S: Simd>(simd: S, bits: &[u16; LANES]) -> Option<f32x16<S>> {
    let widened = match simd.level() {
        Level::Avx512(avx512) => by_sixteen(avx512, bits),
        Level::Avx2(avx2) => by_eight(avx2, bits),
        _ => return None,
    };
    Some(f32x16::from_slice(simd, &widened))
}

fearless_simd::kernel!(
    #[inline]
    fn by_sixteen(avx512: Avx512, bits: &[u16; LANES]) -> [f32; LANES] {
        let bits: __m256i = u16x16::from_slice(avx512, bits).into();
        f32x16::simd_from(avx512, _mm512_cvtph_ps(bits)).into()
    }
);

fearless_simd::kernel!(
    #[inline]
    fn by_eight(avx2: Avx2, bits: &[u16; LANES]) -> [f32; LANES] {
        let (low, high) = bits.split_at(LANES / 2);
        let half = |bits: &[u16]| {
            let bits = u16x8::from_slice(avx2, bits).into();
            f32x8::simd_from(avx2, _mm256_cvtph_ps(bits))
        };
        half(low).combine(half(high)).into()
    }
);
