//! One key head with the value heads that share it.

use std::ops::Range;

use fearless_simd::{f32x16, prelude::*};
use setun_ops::{
    delta_net::{DeltaNet, DeltaNetShape, HeadOrder, query_scale, sigmoid},
    recurrent::{RecurrentSpec, StateId, StateRows},
};

use super::input::{History, Rows};
use crate::{
    causal_conv::{causal_conv, l2_norm, silu},
    delta_rule::{HeadRow, delta_rule},
    delta_scratch::{BLOCK, CHUNK, DeltaScratch, PACKED_ROWS, channels},
    lanes::LANES,
    rms_norm::rms_norm_in_place,
    split::Tile,
};

pub(super) struct KeyHead<'a, S> {
    simd: S,
    net: &'a DeltaNet<'a>,
    index: usize,
    matrices: Tile<'a, f32>, // [states, group × key_dim × value_dim]
    history: History<'a>,
    scratch: &'a mut DeltaScratch,
}

impl<'a, S: Simd> KeyHead<'a, S> {
    pub(super) fn new(
        simd: S,
        net: &'a DeltaNet<'a>,
        spec: &RecurrentSpec,
        index: usize,
        (matrices, history): (Tile<'a, f32>, Tile<'a, f32>),
        scratch: &'a mut DeltaScratch,
    ) -> Self {
        let width = channels(&net.shape);
        let all = net.conv.chunks_exact(net.shape.channels());
        for (taps, all) in scratch.taps.chunks_exact_mut(width).zip(all) {
            let mut at = 0;
            for (first, len) in net.shape.history_columns(index).take(2 + net.shape.group()) {
                taps[at..at + len].copy_from_slice(&all[first..first + len]);
                at += len;
            }
        }
        let history = History::new(history, spec, net.shape, index);
        Self { simd, net, index, matrices, history, scratch }
    }

    /// Takes in the rows of a sequence, tentative ones before them as well.
    pub(super) fn run(&mut self, rows: &Rows<'_>, states: &StateRows, out: &mut Tile<'_, f32>) {
        let Some(&(last, _)) = states.stored.last() else { return };
        let loaded = states.loaded.map(|(id, _)| id);
        let target = last.0 as usize;
        match loaded {
            Some(id) if id == last => {}
            Some(id) => self.matrices.copy_row(id.0 as usize, target),
            None => self.matrices.row(target).fill(0.0),
        }
        let mut taken = states.base() as usize;
        for &(id, until) in &states.stored {
            self.take(rows, loaded, taken..until as usize, Some(target), out);
            taken = until as usize;
            if id != last {
                self.matrices.copy_row(target, id.0 as usize);
                self.history.store(rows, loaded, id, taken);
            }
        }
        if taken < rows.end() {
            let state = self.matrices.row(target);
            self.scratch.state[..state.len()].copy_from_slice(state);
            self.take(rows, loaded, taken..rows.end(), None, out);
        }
        self.history.store(rows, loaded, last, rows.end());
    }

    /// Takes in positions, into a state of the cache or that of the scratch memory.
    fn take(
        &mut self,
        rows: &Rows<'_>,
        loaded: Option<StateId>,
        positions: Range<usize>,
        target: Option<usize>,
        out: &mut Tile<'_, f32>,
    ) {
        let heads = self.net.shape.group();
        for first in positions.clone().step_by(CHUNK) {
            let chunk = first..positions.end.min(first + CHUNK);
            self.mix(rows, loaded, chunk.clone());
            for head in 0..heads {
                self.update(head, chunk.len(), target);
                for (index, position) in chunk.clone().enumerate() {
                    if let Some(input) = rows.row(position) {
                        self.write(
                            head,
                            index,
                            input,
                            rows.in_step.start + position - rows.position,
                            out,
                        );
                    }
                }
            }
        }
    }

    /// The convolution, norms and gates of a chunk.
    fn mix(&mut self, rows: &Rows<'_>, loaded: Option<StateId>, chunk: Range<usize>) {
        let DeltaNetShape { key_dim, kernel, .. } = self.net.shape;
        let shape = self.net.shape;
        let (unit, width) = (shape.history_of_key_head(), channels(&shape));
        let DeltaScratch { raw, mixed, taps, gates, .. } = &mut *self.scratch;
        for (index, raw) in raw.chunks_exact_mut(unit).take(kernel - 1 + chunk.len()).enumerate() {
            match (chunk.start + index).checked_sub(kernel - 1) {
                Some(position) => self.history.copy_input(rows, loaded, position, raw),
                None => raw.fill(0.0),
            }
        }
        let simd = self.simd;
        for index in 0..chunk.len() {
            let seen = &raw[index * unit..];
            let taps = &taps[..kernel * width];
            let mixed = &mut mixed[index * width..][..width];
            simd.vectorize(
                #[inline(always)]
                || {
                    causal_conv(simd, (seen, unit), taps, mixed);
                    l2_norm(simd, &mut mixed[..key_dim], query_scale(key_dim));
                    l2_norm(simd, &mut mixed[key_dim..2 * key_dim], 1.0);
                },
            );
            let row = &raw[(index + kernel - 1) * unit..][width..unit];
            let (betas, alphas) = row.split_at(shape.group());
            let gates = &mut gates[2 * index * shape.group()..][..2 * shape.group()];
            let (decays, sigmoids) = gates.split_at_mut(shape.group());
            for head in 0..shape.group() {
                decays[head] = self.net.decay(shape.value_head(self.index, head), alphas[head]);
                sigmoids[head] = sigmoid(betas[head]);
            }
        }
    }

    /// Updates the state of a value head by the rows of a chunk, and stores the output of each row.
    fn update(&mut self, head: usize, rows: usize, target: Option<usize>) {
        let DeltaNetShape { key_dim, value_dim, .. } = self.net.shape;
        let len = key_dim * value_dim;
        let DeltaScratch { mixed, gates, out, block, state, .. } = &mut *self.scratch;
        let rules = Rules { mixed, gates, shape: self.net.shape, head };
        let state = match target {
            Some(target) => &mut self.matrices.row(target)[head * len..][..len],
            None => &mut state[head * len..][..len],
        };
        if rows < PACKED_ROWS || !value_dim.is_multiple_of(BLOCK) {
            for (row, out) in out.chunks_exact_mut(value_dim).take(rows).enumerate() {
                rules.apply(self.simd, row, state, 0..value_dim, out);
            }
            return;
        }
        let block = &mut block[..key_dim * BLOCK];
        for first in (0..value_dim).step_by(BLOCK) {
            let columns = first..first + BLOCK;
            for (block, state) in block.chunks_exact_mut(BLOCK).zip(state.chunks_exact(value_dim)) {
                block.copy_from_slice(&state[columns.clone()]);
            }
            for (row, out) in out.chunks_exact_mut(value_dim).take(rows).enumerate() {
                rules.apply(self.simd, row, block, columns.clone(), &mut out[columns.clone()]);
            }
            for (block, state) in block.chunks_exact(BLOCK).zip(state.chunks_exact_mut(value_dim)) {
                state[columns.clone()].copy_from_slice(block);
            }
        }
    }

    /// Writes a row's output to the tile, normalized and gated.
    fn write(
        &mut self,
        head: usize,
        index: usize,
        input: &[f32],
        row: usize,
        out: &mut Tile<'_, f32>,
    ) {
        let (shape, d) = (self.net.shape, self.net.shape.value_dim);
        let first = shape.channels() + shape.value_head(self.index, head) * d;
        let z = &input[first..first + d];
        let y = &mut self.scratch.out[index * d..][..d];
        let (simd, net) = (self.simd, self.net);
        simd.vectorize(
            #[inline(always)]
            || {
                rms_norm_in_place(simd, y, net.gain, net.eps);
                gate(simd, y, z);
            },
        );
        match shape.output_order {
            HeadOrder::Grouped => out.row(row)[head * d..][..d].copy_from_slice(y),
            HeadOrder::Tiled => out.row(row * shape.group() + head).copy_from_slice(y),
        }
    }
}

/// `x × silu(z)`, in place.
#[inline(always)]
fn gate<S: Simd>(simd: S, x: &mut [f32], z: &[f32]) {
    let (chunks, rest) = x.as_chunks_mut::<LANES>();
    let (gates, rest_gates) = z.as_chunks::<LANES>();
    for (x, z) in chunks.iter_mut().zip(gates) {
        (silu(simd, f32x16::from_slice(simd, z)) * f32x16::from_slice(simd, x)).store_slice(x);
    }
    for (x, &z) in rest.iter_mut().zip(rest_gates) {
        *x = setun_ops::gate::gate_output(setun_ops::op::Activation::Silu, z, *x);
    }
}

/// The rows of a chunk for one value head.
struct Rules<'a> {
    mixed: &'a [f32],
    gates: &'a [f32],
    shape: DeltaNetShape,
    head: usize,
}

impl Rules<'_> {
    /// One row on some columns of the state, `[key_dim, columns]`.
    fn apply<S: Simd>(
        &self,
        simd: S,
        row: usize,
        state: &mut [f32],
        columns: Range<usize>,
        out: &mut [f32],
    ) {
        let DeltaNetShape { key_dim, value_dim, .. } = self.shape;
        let width = channels(&self.shape);
        let (q, rest) = self.mixed[row * width..][..width].split_at(key_dim);
        let (k, values) = rest.split_at(key_dim);
        let gates = &self.gates[2 * row * self.shape.group()..];
        let (decay, beta) = (gates[self.head], gates[self.shape.group() + self.head]);
        let v = &values[self.head * value_dim..][columns];
        delta_rule(simd, state, HeadRow { q, k, decay, beta }, v, out);
    }
}
