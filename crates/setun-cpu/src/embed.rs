//! `embed`: a lookup, as [`setun_ops::embed`] defines it.

use setun_ops::{
    embed::embed_row,
    op::{BufferId, WeightId},
};

use crate::{split::Grid, step::Buffers, ternary_dot::TernaryDot, walk::Walk};

impl<D: TernaryDot> Walk<'_, D> {
    pub(crate) fn embed(&self, buffers: &mut Buffers, table: WeightId, out: BufferId) {
        let (table, tokens) = (self.weights.dense(table), &self.inputs.tokens);
        buffers.write_floats(out, |_, out| {
            let width = out.width;
            let out = Grid::new(&mut out.values[..tokens.len() * width], width);
            self.each(out.tiles(1, width.max(1)), |_, row, mut out| {
                embed_row(table, tokens[row], out.row(0));
            });
        });
    }
}
