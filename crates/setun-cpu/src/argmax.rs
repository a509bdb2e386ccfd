//! `argmax` over all logits; defined in [`setun_ops::argmax`].
//!
//! Members share out the head as `head` does, then each takes whole rows. The engine chooses on the
//! host where a processor runs, as a screened head reads far less ([`top_logits`](crate::top_logits)); this is
//! for plans that were made for a device.

use setun_ops::{
    aligned::Aligned,
    argmax::argmax,
    op::{BufferId, WeightId},
};

use crate::{
    memory::zeroed,
    split::Grid,
    step::{Buffers, Weights},
    ternary_dot::TernaryDot,
    walk::Walk,
};

/// Rows whose logits there is memory for.
const GROUP: usize = 4;

/// Logits of a group of rows, `[GROUP, vocab]`. Grown by `prepare`, never by a step.
#[derive(Debug, Default)]
pub(crate) struct ArgmaxScratch(Aligned<f32>);

impl ArgmaxScratch {
    /// Grows to what a table and the requested rows need.
    pub(crate) fn grow(
        &mut self,
        weights: &Weights,
        table: WeightId,
        wanted: usize,
    ) -> Result<(), setun_ops::OpsError> {
        let len = wanted.min(GROUP) * weights.dense(table).rows();
        if self.0.len() < len {
            self.0 = zeroed(len, "scratch memory")?;
        }
        Ok(())
    }
}

impl<D: TernaryDot> Walk<'_, D> {
    pub(crate) fn argmax(
        &self,
        buffers: &mut Buffers,
        scratch: &mut ArgmaxScratch,
        x: BufferId,
        table: WeightId,
        out: BufferId,
    ) {
        let table = self.weights.dense(table);
        buffers.write_tokens(out, |buffers, out| {
            let groups = out.values.chunks_mut(GROUP).zip(self.inputs.argmax.chunks(GROUP));
            for (group, (out, requests)) in groups.enumerate() {
                let (first, rows, vocab) = (group * GROUP, requests.len(), table.rows());
                let logits = &mut scratch.0[..rows * vocab];
                let grid = Grid::new(&mut *logits, vocab);
                self.logits(table, buffers.floats(x), first..first + rows, grid);
                let parts = (
                    Grid::new(&mut out[..rows], 1).tiles(1, 1),
                    Grid::new(logits, vocab).tiles(1, vocab),
                );
                self.each(parts, |_, row, (mut out, mut logits)| {
                    out.row(0)[0] = argmax(logits.row(0), &requests[row]);
                });
            }
        });
    }
}
