//! `delta_net` over lanes; defined in [`setun_ops::delta_net`].
//!
//! Members claim key heads, each with the value heads that share it: the states and the history of one are disjoint
//! from another's. Rows of a sequence are taken in a few at a time, so that a part of a state stays in the first-level
//! cache for all of them.

mod input;
mod key_head;

use setun_ops::{
    delta_net::{DeltaNet, DeltaNetShape, HeadOrder},
    host_cache::HostCache,
    op::{BufferId, DeltaNetWeights},
    recurrent::LayerStates,
};

use self::key_head::KeyHead;
pub(crate) use self::key_head::{DeltaScratch, delta_scratch};
use crate::{split::Grid, step::Buffers, ternary_dot::TernaryDot, walk::Walk};

impl<D: TernaryDot> Walk<'_, D> {
    #[expect(clippy::too_many_arguments, reason = "the fields of the operation")]
    pub(crate) fn delta_net(
        &self,
        buffers: &mut Buffers,
        x: BufferId,
        shape: DeltaNetShape,
        weights: &DeltaNetWeights,
        out: BufferId,
        cache: &mut HostCache,
        layer: usize,
    ) {
        let Some(spec) = cache.spec().recurrent else { return };
        let net = DeltaNet {
            shape,
            conv: self.weights.vector(weights.conv),
            decay: self.weights.vector(weights.decay),
            dt_bias: self.weights.vector(weights.dt_bias),
            gain: self.weights.vector(weights.norm.gain),
            eps: weights.norm.eps,
        };
        let (rows, heads) = (self.inputs.rows(), shape.key_heads);
        let states = cache.states().states().max(1);
        let LayerStates { matrices, history } = cache.states_mut().layer_mut(layer);
        buffers.write_floats(out, |buffers, out| {
            let x = buffers.floats(x);
            // A row of the grid has one run of columns for each key head.
            let width = match shape.output_order {
                HeadOrder::Grouped => out.width,
                HeadOrder::Tiled => out.width / shape.group(),
            };
            let values = &mut out.values[..rows * out.width];
            let tile_rows = (values.len() / width).max(1);
            let parts = (
                Grid::new(values, width).tiles(tile_rows, width / heads),
                Grid::new(matrices, spec.matrices()).tiles(states, spec.matrices() / heads),
                Grid::new(history, shape.history_width())
                    .tiles(states * spec.ring(), shape.history_of_key_head()),
            );
            self.each(parts, |scratch, index, (mut out, matrices, history)| {
                let scratch = &mut scratch.delta;
                let mut head = KeyHead::new(
                    self.isa.lanes(),
                    &net,
                    &spec,
                    index,
                    (matrices, history),
                    scratch,
                );
                let mut first = 0;
                for run in self.inputs.slots.chunk_by(|a, b| a == b) {
                    let in_step = first..first + run.len();
                    let position = self.inputs.positions[first] as usize;
                    let states = &self.inputs.states[run[0] as usize];
                    head.run(&input::Rows { x, in_step, position }, states, &mut out);
                    first += run.len();
                }
            });
        });
    }
}
