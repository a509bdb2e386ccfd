//! Loads of two blocks of packed codes, and of the activations that meet them.

use std::arch::x86_64::{
    __m256i, __m512i, _mm512_castsi256_si512, _mm512_inserti64x4, _mm512_zextsi256_si512,
};

use fearless_simd::{i8x32, prelude::*, u8x32, u8x64};
use setun_ops::ternary::{BLOCK_BYTES, BLOCK_COLUMNS, PLANE_COLUMNS};

/// Bytes of packed codes in a load.
pub(super) const PAIR_BYTES: usize = 2 * BLOCK_BYTES;

fearless_simd::kernel!(
    /// The activations of all planes.
    #[inline]
    pub(super) fn planes(avx512: Avx512, x: &[i8]) -> [__m512i; 4] {
        [
            activations(avx512, x, 0),
            activations(avx512, x, 1),
            activations(avx512, x, 2),
            activations(avx512, x, 3),
        ]
    }
);

fearless_simd::kernel!(
    /// The codes of a pair of blocks of a row; zeros for a second block that is not there.
    #[inline]
    pub(super) fn codes(avx512: Avx512, row: &[u8], pair: usize) -> __m512i {
        let row = &row[pair * PAIR_BYTES..];
        if let Some(pair) = row.get(..PAIR_BYTES) {
            return u8x64::from_slice(avx512, pair).into();
        }
        let last: __m256i = u8x32::from_slice(avx512, &row[..BLOCK_BYTES]).into();
        _mm512_zextsi256_si512(last)
    }
);

fearless_simd::kernel!(
    /// The activations of a plane of the first two blocks of `x`; those of the first twice where
    /// it is the last.
    #[inline]
    fn activations(avx512: Avx512, x: &[i8], plane: usize) -> __m512i {
        let at = plane * PLANE_COLUMNS;
        let next = if x.len() > BLOCK_COLUMNS { BLOCK_COLUMNS } else { 0 };
        let first: __m256i = i8x32::from_slice(avx512, &x[at..][..PLANE_COLUMNS]).into();
        let second: __m256i = i8x32::from_slice(avx512, &x[at + next..][..PLANE_COLUMNS]).into();
        _mm512_inserti64x4::<1>(_mm512_castsi256_si512(first), second)
    }
);
