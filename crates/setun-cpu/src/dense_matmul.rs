//! `dense_matmul` by the products of [`head`](crate::head); defined in [`setun_ops::dense_matmul`].

use setun_ops::op::{BufferId, WeightId};

use crate::{split::Grid, step::Buffers, ternary_dot::TernaryDot, walk::Walk};

impl<D: TernaryDot> Walk<'_, D> {
    pub(crate) fn dense_matmul(
        &self,
        buffers: &mut Buffers,
        x: BufferId,
        weight: WeightId,
        out: BufferId,
        out_column: usize,
    ) {
        let (rows, matrix) = (self.inputs.rows(), self.weights.dense(weight));
        buffers.write_floats(out, |buffers, out| {
            let width = out.width;
            let columns = out_column..out_column + matrix.rows();
            let out = Grid::new(&mut out.values[..rows * width], width).columns(columns);
            self.products(matrix, buffers.floats(x), 0..rows, out);
        });
    }
}
