//! `rms_norm` over lanes; defined in [`setun_ops::rms_norm`].

use fearless_simd::{f32x16, prelude::*};
use setun_ops::{
    op::{BufferId, Norm},
    rms_norm::inverse_rms,
};

use crate::{
    lanes::{LANES, sum_squares},
    split::Grid,
    step::Buffers,
    ternary_dot::TernaryDot,
    walk::Walk,
};

impl<D: TernaryDot> Walk<'_, D> {
    pub(crate) fn rms_norm(&self, buffers: &mut Buffers, x: BufferId, norm: Norm, out: BufferId) {
        let gather = self.plan.buffer(x).rows != self.plan.buffer(out).rows;
        let (rows, gain) = (self.rows(out), self.weights.vector(norm.gain));
        buffers.write_floats(out, |buffers, out| {
            let (x, width) = (buffers.floats(x), out.width);
            let out = Grid::new(&mut out.values[..rows * width], width).tiles(1, width.max(1));
            self.each(out, |_, row, mut out| {
                let source = if gather { self.inputs.wanted[row] as usize } else { row };
                rms_norm_row(self.isa.lanes(), x.row(source), gain, norm.eps, out.row(0));
            });
        });
    }
}

/// Lane version of [`setun_ops::rms_norm::rms_norm_row`].
pub(crate) fn rms_norm_row<S: Simd>(simd: S, x: &[f32], gain: &[f32], eps: f32, y: &mut [f32]) {
    simd.vectorize(
        #[inline(always)]
        || {
            y.copy_from_slice(x);
            rms_norm_in_place(simd, y, gain, eps);
        },
    );
}

/// The same, over the row itself.
#[inline(always)]
pub(crate) fn rms_norm_in_place<S: Simd>(simd: S, x: &mut [f32], gain: &[f32], eps: f32) {
    assert_eq!(x.len(), gain.len(), "row and gain");
    let inverse = inverse_rms(sum_squares(simd, x), x.len(), eps);
    let (chunks, rest) = x.as_chunks_mut::<LANES>();
    let (gains, rest_gains) = gain.as_chunks::<LANES>();
    for (x, gain) in chunks.iter_mut().zip(gains) {
        (f32x16::from_slice(simd, x) * inverse * f32x16::from_slice(simd, gain)).store_slice(x);
    }
    for (x, gain) in rest.iter_mut().zip(rest_gains) {
        *x = *x * inverse * gain;
    }
}
