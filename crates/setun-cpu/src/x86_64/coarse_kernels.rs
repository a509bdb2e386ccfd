//! Sums over coarse codes, as far as levels share them; the layout is that of
//! [`setun_ops::screen_planes`].

/// The codes of the eight units of a block, or of the same part of each, from its five lines.
macro_rules! coarse_units {
    ($lines:expr, $set:ident, $and:ident, $or:ident, $shift:ident) => {{
        let lines = $lines;
        let (five, high, low) = ($set(0x1f), $set(0x1c), $set(0x03));
        let six = $or($and($shift::<3>(lines[1]), high), $and($shift::<6>(lines[4]), low));
        let seven = $or(
            $and($shift::<3>(lines[2]), high),
            $or($and($shift::<4>(lines[3]), $set(0x02)), $and($shift::<5>(lines[4]), $set(0x01))),
        );
        let upper = $or($and($shift::<3>(lines[0]), high), $and($shift::<6>(lines[3]), low));
        [
            [
                $and(lines[0], five),
                $and(lines[1], five),
                $and(lines[2], five),
                $and(lines[3], five),
            ],
            [$and(lines[4], five), upper, six, seven],
        ]
    }};
}
pub(super) use coarse_units;

/// The kernel of AVX2 and AVX-VNNI. `$add` adds the products of four times 32 codes with a plane to sums.
macro_rules! coarse_kernel {
    ($features:literal, $add:ident) => {
        /// The sums of four rows, one after another: a row's four sums for each plane leave no register.
        #[target_feature(enable = $features)]
        fn coarse_rows(
            avx2: Avx2,
            rows: [&[u8]; 4],
            ahead: [&[u8]; 4],
            planes: [&[i8]; 2],
        ) -> Dots {
            let mut sums = [[std::arch::x86_64::_mm256_setzero_si256(); 4]; 2];
            for row in 0..4 {
                let [high, low] = coarse_row(avx2, rows[row], ahead[row], planes);
                sums[0][row] = high;
                sums[1][row] = low;
            }
            [add_lanes(avx2, sums[0]), add_lanes(avx2, sums[1])]
        }

        #[target_feature(enable = $features)]
        #[inline]
        fn coarse_row(avx2: Avx2, row: &[u8], ahead: &[u8], planes: [&[i8]; 2]) -> [__m256i; 2] {
            use std::arch::x86_64::{
                _mm256_add_epi32, _mm256_and_si256, _mm256_or_si256, _mm256_set1_epi8,
                _mm256_srli_epi16,
            };
            let blocks = row.as_chunks::<COARSE_BYTES>().0;
            let ahead = &ahead.as_chunks::<COARSE_BYTES>().0[..blocks.len()];
            let high = &planes[0].as_chunks::<PLANE_BLOCK>().0[..blocks.len()];
            let low = &planes[1].as_chunks::<PLANE_BLOCK>().0[..blocks.len()];
            let [mut high_sums, mut low_sums] = [[std::arch::x86_64::_mm256_setzero_si256(); 4]; 2];
            for block in 0..blocks.len() {
                prefetch(&ahead[block]);
                for half in [0, SCREEN_COLUMNS] {
                    let line = |line: usize| -> __m256i {
                        let at = line * UNIT + half;
                        u8x32::from_slice(avx2, &blocks[block][at..at + SCREEN_COLUMNS]).into()
                    };
                    let lines = [line(0), line(1), line(2), line(3), line(4)];
                    let codes = crate::x86_64::coarse_kernels::coarse_units!(
                        lines,
                        _mm256_set1_epi8,
                        _mm256_and_si256,
                        _mm256_or_si256,
                        _mm256_srli_epi16
                    );
                    for part in 0..2 {
                        let x = |plane: &[i8; PLANE_BLOCK], unit: usize| -> __m256i {
                            let at = (4 * part + unit) * UNIT + half;
                            i8x32::from_slice(avx2, &plane[at..at + SCREEN_COLUMNS]).into()
                        };
                        let plane = &high[block];
                        let xs = [x(plane, 0), x(plane, 1), x(plane, 2), x(plane, 3)];
                        high_sums = $add(high_sums, codes[part], xs);
                        let plane = &low[block];
                        let xs = [x(plane, 0), x(plane, 1), x(plane, 2), x(plane, 3)];
                        low_sums = $add(low_sums, codes[part], xs);
                    }
                }
            }
            let [a, b, c, d] = high_sums;
            let [e, f, g, h] = low_sums;
            [
                _mm256_add_epi32(_mm256_add_epi32(a, b), _mm256_add_epi32(c, d)),
                _mm256_add_epi32(_mm256_add_epi32(e, f), _mm256_add_epi32(g, h)),
            ]
        }
    };
}
pub(super) use coarse_kernel;
