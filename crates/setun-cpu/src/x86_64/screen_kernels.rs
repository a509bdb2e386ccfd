//! The loops of `screen_dot` that AVX2 and AVX-VNNI share: they differ in a product.

use std::arch::x86_64::{
    __m256i, _mm_add_epi32, _mm_cvtsi128_si32, _mm_extract_epi32, _mm_hadd_epi32,
    _mm256_castsi256_si128, _mm256_extracti128_si256, _mm256_hadd_epi32,
};

/// The kernels for some hidden rows and for one. `$add` adds the products of 32 codes with a plane
/// to the eight lanes of a sum.
macro_rules! screen_kernels {
    ($features:literal, $add:ident) => {
        use std::arch::x86_64::__m256i;

        use fearless_simd::{i8x32, prelude::*, u8x32, x86::Avx2};
        use setun_ops::screen_dot::SCREEN_COLUMNS;

        use crate::x86_64::{
            avx2::ternary_dot::add_lanes, prefetch_blocks, screen_kernels::add_lanes_of_two,
        };

        /// Two rows of codes at a time, whose sums are folded and stored before the next two begin: beside those
        /// of all, no register would be left for the codes.
        #[target_feature(enable = $features)]
        fn with_hidden<const HIDDEN: usize>(
            avx2: Avx2,
            codes: [&[u8]; 4],
            ahead: [&[u8]; 4],
            planes: [[&[i8]; 2]; HIDDEN],
            dots: &mut [Dots],
        ) {
            let (rows, ahead) = (codes.as_chunks().0, ahead.as_chunks().0);
            for (pair, (codes, ahead)) in rows.iter().zip(ahead).enumerate() {
                let sums = two_rows(avx2, *codes, *ahead, planes);
                for (dots, sums) in dots.iter_mut().zip(sums) {
                    for (dots, [a, b]) in dots.iter_mut().zip(sums) {
                        dots[2 * pair..][..2].copy_from_slice(&add_lanes_of_two(a, b));
                    }
                }
            }
        }

        /// The sums of two rows, as `[hidden row][plane][row]`.
        #[target_feature(enable = $features)]
        #[inline]
        fn two_rows<const HIDDEN: usize>(
            avx2: Avx2,
            codes: [&[u8]; 2],
            ahead: [&[u8]; 2],
            planes: [[&[i8]; 2]; HIDDEN],
        ) -> [[[__m256i; 2]; 2]; HIDDEN] {
            let steps = codes[0].len() / SCREEN_COLUMNS;
            let (a, b) = (&codes[0].as_chunks().0[..steps], &codes[1].as_chunks().0[..steps]);
            // Not by `map`, whose closure would be called, and the lengths be forgotten.
            let mut x: [[&[[i8; SCREEN_COLUMNS]]; 2]; HIDDEN] = [[&[]; 2]; HIDDEN];
            for hidden in 0..HIDDEN {
                for plane in 0..2 {
                    x[hidden][plane] = &planes[hidden][plane].as_chunks().0[..steps];
                }
            }
            let mut sums = [[[std::arch::x86_64::_mm256_setzero_si256(); 2]; 2]; HIDDEN];
            for step in 0..steps {
                prefetch_blocks(ahead, step);
                let a: __m256i = u8x32::simd_from(avx2, a[step]).into();
                let b: __m256i = u8x32::simd_from(avx2, b[step]).into();
                for hidden in 0..HIDDEN {
                    for plane in 0..2 {
                        let x: __m256i = i8x32::simd_from(avx2, x[hidden][plane][step]).into();
                        let [a_sum, b_sum] = sums[hidden][plane];
                        sums[hidden][plane] = [$add(a_sum, a, x), $add(b_sum, b, x)];
                    }
                }
            }
            sums
        }

        #[target_feature(enable = $features)]
        fn four_rows(
            avx2: Avx2,
            codes: [&[u8]; 4],
            ahead: [&[u8]; 4],
            planes: [&[i8]; 2],
        ) -> [[i32; 4]; 2] {
            let steps = codes[0].len() / SCREEN_COLUMNS;
            // Not by `map`, as above.
            let mut rows: [&[[u8; SCREEN_COLUMNS]]; 4] = [&[]; 4];
            for row in 0..4 {
                rows[row] = &codes[row].as_chunks().0[..steps];
            }
            let (high, low) =
                (&planes[0].as_chunks().0[..steps], &planes[1].as_chunks().0[..steps]);
            let [mut high_sums, mut low_sums] = [[std::arch::x86_64::_mm256_setzero_si256(); 4]; 2];
            for step in 0..steps {
                prefetch_blocks(ahead, step);
                let high: __m256i = i8x32::simd_from(avx2, high[step]).into();
                let low: __m256i = i8x32::simd_from(avx2, low[step]).into();
                for row in 0..4 {
                    let codes: __m256i = u8x32::simd_from(avx2, rows[row][step]).into();
                    high_sums[row] = $add(high_sums[row], codes, high);
                    low_sums[row] = $add(low_sums[row], codes, low);
                }
            }
            [add_lanes(avx2, high_sums), add_lanes(avx2, low_sums)]
        }
    };
}
pub(super) use screen_kernels;

/// The sum of the lanes of each of two vectors.
#[target_feature(enable = "avx2")]
#[inline]
pub(super) fn add_lanes_of_two(a: __m256i, b: __m256i) -> [i32; 2] {
    let pairs = _mm256_hadd_epi32(a, b);
    let fours = _mm_add_epi32(_mm256_castsi256_si128(pairs), _mm256_extracti128_si256::<1>(pairs));
    let folded = _mm_hadd_epi32(fours, fours);
    [_mm_cvtsi128_si32(folded), _mm_extract_epi32::<1>(folded)]
}
