//! `embed`: a lookup, as [`setun_ops::embed`] defines it.

use setun_ops::{
    dense::DenseValues,
    embed::embed_row,
    op::{BufferId, WeightId},
};

use crate::{
    split::Grid, step::Buffers, ternary_dot::TernaryDot, ternary_rows::widen_ternary_row,
    walk::Walk,
};

impl<D: TernaryDot> Walk<'_, D> {
    pub(crate) fn embed(&self, buffers: &mut Buffers, table: WeightId, out: BufferId) {
        let (table, tokens) = (self.weights.dense(table), &self.inputs.tokens);
        buffers.write_floats(out, |_, out| {
            let width = out.width;
            let out = Grid::new(&mut out.values[..tokens.len() * width], width);
            self.each(out.tiles(1, width.max(1)), |_, row, mut out| match table.values() {
                DenseValues::Ternary(matrix) => {
                    widen_ternary_row(self.isa.lanes(), matrix, tokens[row] as usize, out.row(0));
                }
                _ => embed_row(table, tokens[row], out.row(0)),
            });
        });
    }
}
