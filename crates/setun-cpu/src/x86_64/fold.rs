//! The last part of sixteen folds at once, with AVX-512.

use std::arch::x86_64::{
    __m512, _mm512_add_ps, _mm512_mask_blend_ps, _mm512_permutex2var_ps, _mm512_setr_epi32,
    _mm512_shuffle_f32x4, _mm512_shuffle_ps,
};

use fearless_simd::{Level, f32x16, prelude::*};
use setun_ops::fold::LANES;

/// Sums of the lanes of sixteen vectors, each in the order of a fold. None on a level without the
/// instructions.
#[inline(always)]
pub(crate) fn fold_sixteen<S: Simd>(simd: S, sums: &[f32x16<S>; LANES]) -> Option<[f32; LANES]> {
    match simd.level() {
        Level::Avx512(avx512) => Some(fold_rows(avx512, &sums.map(Into::into))),
        _ => None,
    }
}

fearless_simd::kernel!(
    /// Each step adds the halves of two vectors and leaves them side by side: one keeps its place in
    /// a blend, the other comes to it by a shuffle.
    #[inline]
    fn fold_rows(avx512: Avx512, rows: &[[f32; LANES]; LANES]) -> [f32; LANES] {
        let mut sums = [f32x16::splat(avx512, 0.0).into(); LANES];
        for (sum, row) in sums.iter_mut().zip(rows) {
            *sum = f32x16::from_slice(avx512, row).into();
        }
        // Lanes 8 apart.
        for i in 0..8 {
            let (a, b): (__m512, __m512) = (sums[i], sums[i + 8]);
            let kept = _mm512_mask_blend_ps(0xff00, a, b);
            sums[i] = _mm512_add_ps(kept, _mm512_shuffle_f32x4::<0b01_00_11_10>(a, b));
        }
        // 4 apart.
        let order = _mm512_setr_epi32(4, 5, 6, 7, 16, 17, 18, 19, 12, 13, 14, 15, 24, 25, 26, 27);
        for i in 0..4 {
            let (a, b) = (sums[i], sums[i + 4]);
            let kept = _mm512_mask_blend_ps(0xf0f0, a, b);
            sums[i] = _mm512_add_ps(kept, _mm512_permutex2var_ps(a, order, b));
        }
        // 2 apart.
        for i in 0..2 {
            let (a, b) = (sums[i], sums[i + 2]);
            let kept = _mm512_mask_blend_ps(0xcccc, a, b);
            sums[i] = _mm512_add_ps(kept, _mm512_shuffle_ps::<0b01_00_11_10>(a, b));
        }
        // Neighbours.
        let order = _mm512_setr_epi32(1, 16, 3, 18, 5, 20, 7, 22, 9, 24, 11, 26, 13, 28, 15, 30);
        let (a, b) = (sums[0], sums[1]);
        let kept = _mm512_mask_blend_ps(0xaaaa, a, b);
        let all = _mm512_add_ps(kept, _mm512_permutex2var_ps(a, order, b));
        f32x16::simd_from(avx512, all).into()
    }
);
