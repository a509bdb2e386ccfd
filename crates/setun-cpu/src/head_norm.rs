//! `head_norm` over lanes; defined in [`setun_ops::head_norm`].

use fearless_simd::prelude::*;
use setun_ops::op::{BufferId, Norm};

use crate::{
    rms_norm::rms_norm_in_place, split::Grid, step::Buffers, ternary_dot::TernaryDot, walk::Walk,
};

impl<D: TernaryDot> Walk<'_, D> {
    pub(crate) fn head_norm(
        &self,
        buffers: &mut Buffers,
        x: BufferId,
        column: usize,
        heads: usize,
        norm: Norm,
    ) {
        let (rows, gain) = (self.rows(x), self.weights.vector(norm.gain));
        buffers.write_floats(x, |_, x| {
            let width = x.width;
            let x = Grid::new(&mut x.values[..rows * width], width)
                .columns(column..column + heads * gain.len())
                .tiles(1, (heads * gain.len()).max(1));
            self.each(x, |_, _, mut row| {
                let simd = self.isa.lanes();
                for head in row.row(0).chunks_exact_mut(gain.len()) {
                    simd.vectorize(
                        #[inline(always)]
                        || rms_norm_in_place(simd, head, gain, norm.eps),
                    );
                }
            });
        });
    }
}
