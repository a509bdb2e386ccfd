//! The recurrence of `delta_net` over the states of a cache.

use std::iter;

use super::ScalarStep;
use crate::{
    batch_inputs::BatchInputs,
    delta_net::{DeltaNet, DeltaNetShape},
    host_cache::HostCache,
    op::{BufferId, DeltaNetWeights},
    recurrent::{RecurrentSpec, StateId, StateRows},
};

impl ScalarStep {
    pub(super) fn delta_net(
        &mut self,
        x: BufferId,
        shape: DeltaNetShape,
        weights: &DeltaNetWeights,
        layer: usize,
        out: BufferId,
        (cache, inputs): (&mut HostCache, &BatchInputs),
    ) {
        let Some(spec) = cache.spec().recurrent else { return };
        for (slot, states) in inputs.states.iter().enumerate() {
            let rows: Vec<_> =
                (0..inputs.rows()).filter(|&row| inputs.slots[row] as usize == slot).collect();
            let Some(&first) = rows.first() else { continue };
            let mut sequence = Sequence::load(cache, layer, &spec, states);
            let position = inputs.positions[first] as usize;
            let base = states.base() as usize;
            for &(id, _) in states.stored.iter().filter(|stored| stored.1 as usize == base) {
                sequence.store(cache, layer, id);
            }
            for taken in base..position + rows.len() {
                if let Some(&row) = taken.checked_sub(position).and_then(|index| rows.get(index)) {
                    let input = self.row(x, row).to_vec();
                    let o = sequence.take(&self.net(shape, weights), taken, Some(&input));
                    let y = outputs(&self.net(shape, weights), &o, &input);
                    self.row_mut(out, row).copy_from_slice(&y);
                } else {
                    sequence.take(&self.net(shape, weights), taken, None);
                }
                for &(id, _) in states.stored.iter().filter(|stored| stored.1 as usize == taken + 1)
                {
                    sequence.store(cache, layer, id);
                }
            }
            if let Some(&(id, _)) = states.stored.last() {
                sequence.store_history(cache, layer, id);
            }
        }
    }

    fn net(&self, shape: DeltaNetShape, weights: &DeltaNetWeights) -> DeltaNet<'_> {
        DeltaNet {
            shape,
            conv: self.vector(weights.conv),
            decay: self.vector(weights.decay),
            dt_bias: self.vector(weights.dt_bias),
            gain: self.vector(weights.norm.gain),
            eps: weights.norm.eps,
        }
    }
}

/// The rows' results in the order of the output matrix.
fn outputs(net: &DeltaNet<'_>, o: &[f32], input: &[f32]) -> Vec<f32> {
    let (shape, d) = (net.shape, net.shape.value_dim);
    let mut out = vec![0.0; o.len()];
    for key_head in 0..shape.key_heads {
        for index in 0..shape.group() {
            let head = shape.value_head(key_head, index) * d;
            let z = &input[shape.channels() + head..][..d];
            let y = net.output(&o[head..][..d], z);
            out[shape.output_column(key_head, index)..][..d].copy_from_slice(&y);
        }
    }
    out
}

/// The state of a sequence in a layer.
struct Sequence {
    spec: RecurrentSpec,
    matrices: Vec<f32>,
    history: Vec<f32>, // [ring, history_width]
}

impl Sequence {
    fn load(cache: &mut HostCache, layer: usize, spec: &RecurrentSpec, rows: &StateRows) -> Self {
        let layer = cache.states_mut().layer_mut(layer);
        let (matrices, history) = match rows.loaded {
            Some((id, _)) => {
                let [matrices, history] = layer.parts_mut(spec, id);
                (matrices.to_vec(), history.to_vec())
            }
            None => (vec![0.0; spec.matrices()], vec![0.0; spec.history()]),
        };
        Self { spec: *spec, matrices, history }
    }

    /// Takes in the row of a position: an input, or what the ring has of it.
    fn take(&mut self, net: &DeltaNet<'_>, position: usize, input: Option<&[f32]>) -> Vec<f32> {
        let shape = net.shape;
        let before = (shape.kernel - 1).min(position);
        let zeros = iter::repeat_n(vec![0.0; shape.input_width()], shape.kernel - 1 - before);
        let known = (position - before..position).map(|position| self.input(net, position));
        let row = input.map_or_else(|| self.input(net, position), <[f32]>::to_vec);
        let window: Vec<_> = zeros.chain(known).chain([row.clone()]).collect();
        let window: Vec<_> = window.iter().map(Vec::as_slice).collect();
        let mut of_heads = vec![];
        for (first, len) in (0..shape.key_heads).flat_map(|head| shape.history_columns(head)) {
            of_heads.extend_from_slice(&row[first..first + len]);
        }
        self.ring(position).copy_from_slice(&of_heads);
        net.step(&window, &mut self.matrices)
    }

    /// The input of a position of the ring; `z` is not kept.
    fn input(&self, net: &DeltaNet<'_>, position: usize) -> Vec<f32> {
        let width = net.shape.history_width();
        let mut row = &self.history[position % self.spec.ring() * width..][..width];
        let mut input = vec![0.0; net.shape.input_width()];
        for (first, len) in
            (0..net.shape.key_heads).flat_map(|head| net.shape.history_columns(head))
        {
            let (part, rest) = row.split_at(len);
            input[first..first + len].copy_from_slice(part);
            row = rest;
        }
        input
    }

    fn ring(&mut self, position: usize) -> &mut [f32] {
        let width = self.spec.shape.history_width();
        &mut self.history[position % self.spec.ring() * width..][..width]
    }

    fn store(&self, cache: &mut HostCache, layer: usize, id: StateId) {
        let [matrices, _] = cache.states_mut().layer_mut(layer).parts_mut(&self.spec, id);
        matrices.copy_from_slice(&self.matrices);
        self.store_history(cache, layer, id);
    }

    fn store_history(&self, cache: &mut HostCache, layer: usize, id: StateId) {
        let [_, history] = cache.states_mut().layer_mut(layer).parts_mut(&self.spec, id);
        history.copy_from_slice(&self.history);
    }
}
