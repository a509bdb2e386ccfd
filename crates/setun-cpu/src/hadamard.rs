//! `hadamard` over lanes; defined in [`setun_ops::hadamard`].

use fearless_simd::{f32x16, prelude::*};
use setun_ops::{
    hadamard::scale,
    op::{BufferId, WeightId},
};

use crate::{lanes::LANES, split::Grid, step::Buffers, ternary_dot::TernaryDot, walk::Walk};

impl<D: TernaryDot> Walk<'_, D> {
    pub(crate) fn hadamard(
        &self,
        buffers: &mut Buffers,
        x: BufferId,
        signs: Option<WeightId>,
        block: usize,
        is_inverse: bool,
    ) {
        let (rows, simd) = (self.rows(x), self.isa.lanes());
        let signs = signs.map(|signs| self.weights.vector(signs));
        buffers.write_floats(x, |_, x| {
            let width = x.width;
            let x = Grid::new(&mut x.values[..rows * width], width).tiles(1, block);
            self.each(x, |_, _, mut tile| {
                let columns = tile.columns();
                let signs = signs.map(|signs| &signs[columns]);
                rotate_block(simd, tile.row(0), signs, is_inverse);
            });
        });
    }
}

/// One block of columns, of at least 64.
fn rotate_block<S: Simd>(simd: S, x: &mut [f32], signs: Option<&[f32]>, is_inverse: bool) {
    simd.vectorize(
        #[inline(always)]
        || {
            let scale = scale(x.len());
            if let Some(signs) = signs.filter(|_| !is_inverse) {
                multiply(simd, x, signs);
            }
            let mut distance = 1;
            while distance < LANES {
                for pairs in x.chunks_exact_mut(2 * distance) {
                    let (low, high) = pairs.split_at_mut(distance);
                    for (a, b) in low.iter_mut().zip(high) {
                        (*a, *b) = (*a + *b, *a - *b);
                    }
                }
                distance *= 2;
            }
            while distance < x.len() {
                for pairs in x.chunks_exact_mut(2 * distance) {
                    let (low, high) = pairs.split_at_mut(distance);
                    let highs = high.as_chunks_mut::<LANES>().0;
                    for (a, b) in low.as_chunks_mut::<LANES>().0.iter_mut().zip(highs) {
                        let (x, y) = (f32x16::from_slice(simd, a), f32x16::from_slice(simd, b));
                        (x + y).store_slice(a);
                        (x - y).store_slice(b);
                    }
                }
                distance *= 2;
            }
            for x in x.as_chunks_mut::<LANES>().0 {
                (f32x16::from_slice(simd, x) * scale).store_slice(x);
            }
            if let Some(signs) = signs.filter(|_| is_inverse) {
                multiply(simd, x, signs);
            }
        },
    );
}

#[inline(always)]
fn multiply<S: Simd>(simd: S, x: &mut [f32], signs: &[f32]) {
    for (x, sign) in x.as_chunks_mut::<LANES>().0.iter_mut().zip(signs.as_chunks::<LANES>().0) {
        (f32x16::from_slice(simd, x) * f32x16::from_slice(simd, sign)).store_slice(x);
    }
}
