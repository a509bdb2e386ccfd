//! Rows of ternary tables as floats; defined in [`setun_ops::DenseMatrix::widen_row`].

use fearless_simd::prelude::*;
use setun_ops::{
    TernaryMatrix,
    ternary::{BLOCK_BYTES, PLANE_COLUMNS},
};

use crate::lanes::{Element, LANES};

/// `weight × scale` of each column of a row.
pub(crate) fn widen_ternary_row<S: Simd>(
    simd: S,
    matrix: &TernaryMatrix,
    row: usize,
    out: &mut [f32],
) {
    let (blocks, _) = matrix.row(row).as_chunks::<BLOCK_BYTES>();
    simd.vectorize(
        #[inline(always)]
        || {
            for (plane, out) in out.chunks_mut(PLANE_COLUMNS).enumerate() {
                let scale = matrix.scale(row, plane * PLANE_COLUMNS);
                let (block, shift) = (&blocks[plane / 4], 2 * (plane % 4));
                let (halves, _) = block.as_chunks::<LANES>();
                for (codes, out) in halves.iter().zip(out.chunks_mut(LANES)) {
                    let weights = codes.map(|code| (code >> shift & 0b11).cast_signed() - 1);
                    let widened = i8::widen(simd, &weights) * scale;
                    match out.as_chunks_mut::<LANES>() {
                        ([whole], _) => widened.store_slice(whole),
                        (_, part) => {
                            let widened: [f32; LANES] = widened.into();
                            part.copy_from_slice(&widened[..part.len()]);
                        }
                    }
                }
            }
        },
    );
}
