//! `ScalarBackend`: every operation by its definition, and nothing else.
//!
//! It is what other backends are compared with, and what runs where none of them can. Plain
//! loops, one thread.

mod delta_net;
mod hybrid;
mod memory;
#[cfg(feature = "comparison")]
mod one_op;

use std::{ops::Range, sync::Arc};

use crate::{
    HAS_RECURRENT,
    argmax::argmax_row,
    attention::attention_head,
    backend::{Backend, check_read, check_step, check_weights, check_write},
    batch_inputs::BatchInputs,
    embed::embed_row,
    error::OpsError,
    gate::gate_output,
    head::head_logit,
    head_norm::head_norm_row,
    host_cache::HostCache,
    op::{BufferId, HeadShape, Linear, Norm, Op, WeightId},
    plan::{BufferKind, BufferSpec, Plan},
    quantize::{quantize_groups, quantize_row, scales_of_row},
    rms_norm::rms_norm_row,
    rope_append::rotate_head,
    ternary::padded_columns,
    ternary_matmul::{OutputBias, QuantizedRow, ternary_matmul_output},
    top_logits::{Ranked, top_logits_row},
    weight::{Usage, WeightData},
};

/// Interprets plans by the definitions. See the [module](self).
#[derive(Debug, Default)]
pub struct ScalarBackend;

/// A plan with its weights and buffers.
#[derive(Debug)]
pub struct ScalarStep {
    plan: Plan,
    weights: Vec<Arc<WeightData>>,
    buffers: Vec<Buffer>,
}

#[derive(Debug, Default)]
struct Buffer {
    floats: Vec<f32>,    // [rows, width], or [rows, groups] scales of a quantized buffer
    codes: Vec<i8>,      // [rows, padded_columns(width)], of a quantized buffer
    ranked: Vec<Ranked>, // [rows, width], of a ranked buffer
    tokens: Vec<u32>,    // [rows, width], of a buffer of tokens
}

impl Backend for ScalarBackend {
    type Weight = Arc<WeightData>;
    type Prepared = ScalarStep;
    type Cache = HostCache;

    fn upload(&mut self, weight: WeightData, _usage: Usage) -> Result<Self::Weight, OpsError> {
        Ok(Arc::new(weight))
    }

    fn prepare(&mut self, plan: &Plan, weights: &[Self::Weight]) -> Result<ScalarStep, OpsError> {
        check_weights(plan, weights.iter().map(|weight| weight.spec()))?;
        let buffers = plan.each_buffer().map(|(_, BufferSpec { kind, width, .. }, rows)| {
            let mut buffer = Buffer::default();
            match kind {
                BufferKind::F32 => buffer.floats = zeroed(rows * width)?,
                BufferKind::Ranked => buffer.ranked = zeroed(rows * width)?,
                BufferKind::Tokens => buffer.tokens = zeroed(rows * width)?,
                BufferKind::Quantized { group } => {
                    buffer.floats = zeroed(rows * scales_of_row(width, group))?;
                    buffer.codes = zeroed(rows * padded_columns(width))?;
                }
            }
            Ok(buffer)
        });
        let buffers = buffers.collect::<Result<_, OpsError>>()?;
        Ok(ScalarStep { plan: plan.clone(), weights: weights.to_vec(), buffers })
    }

    fn write(
        &mut self,
        step: &mut ScalarStep,
        buffer: BufferId,
        rows: Range<usize>,
        data: &[u8],
    ) -> Result<(), OpsError> {
        let elements = check_write(&step.plan, buffer, &rows, data)?;
        let floats = &mut step.buffers[buffer.0 as usize].floats[elements];
        bytemuck::cast_slice_mut(floats).copy_from_slice(data);
        Ok(())
    }

    fn run(
        &mut self,
        step: &mut ScalarStep,
        cache: &mut HostCache,
        inputs: &BatchInputs,
    ) -> Result<(), OpsError> {
        check_step(&step.plan, cache.spec(), cache.sizes(), inputs)?;
        for op in step.plan.clone().ops() {
            step.run_op(op, cache, inputs);
        }
        Ok(())
    }

    async fn read(
        &mut self,
        step: &ScalarStep,
        buffer: BufferId,
        rows: Range<usize>,
        out: &mut [u8],
    ) -> Result<(), OpsError> {
        let BufferSpec { kind, width, .. } = check_read(&step.plan, buffer, &rows, out, 1)?;
        let values = &step.buffers[buffer.0 as usize];
        if let Some(bytes) = values.bytes(kind) {
            let row_bytes = width * kind.element_bytes();
            out.copy_from_slice(&bytes[rows.start * row_bytes..rows.end * row_bytes]);
        } else {
            let stored = values.codes.chunks_exact(padded_columns(width)).skip(rows.start);
            for (out, codes) in out.chunks_exact_mut(width).zip(stored) {
                out.copy_from_slice(bytemuck::cast_slice(&codes[..width]));
            }
        }
        Ok(())
    }

    crate::host_cache_methods!();
}

impl Buffer {
    /// The memory of rows without padding; none of codes.
    fn bytes(&self, kind: BufferKind) -> Option<&[u8]> {
        match kind {
            BufferKind::F32 => Some(bytemuck::cast_slice(&self.floats)),
            BufferKind::Ranked => Some(bytemuck::cast_slice(&self.ranked)),
            BufferKind::Tokens => Some(bytemuck::cast_slice(&self.tokens)),
            BufferKind::Quantized { .. } => None,
        }
    }
}

fn zeroed<T: Clone + Default>(len: usize) -> Result<Vec<T>, OpsError> {
    let bytes = len.saturating_mul(size_of::<T>());
    let mut values = vec![];
    values.try_reserve_exact(len).map_err(|_| OpsError::OutOfMemory { what: "a buffer", bytes })?;
    values.resize(len, T::default());
    Ok(values)
}

impl ScalarStep {
    fn run_op(&mut self, op: &Op, cache: &mut HostCache, inputs: &BatchInputs) {
        match op {
            Op::Embed { table, out } => {
                for (row, &token) in inputs.tokens.iter().enumerate() {
                    let mut hidden = vec![0.0; self.width(*out)];
                    embed_row(self.dense(*table), token, &mut hidden);
                    self.row_mut(*out, row).copy_from_slice(&hidden);
                }
            }
            Op::RmsNorm { x, norm, out } => self.rms_norm(*x, *norm, *out, inputs),
            Op::Quantize { x, norm, out } => self.quantize(*x, *norm, *out, inputs),
            Op::TernaryMatmul { linear, residual, out, out_column } => {
                for row in 0..self.rows(*out, inputs) {
                    let mut y = self.linear_row(linear, row);
                    if let Some(residual) = residual {
                        y.iter_mut().zip(self.row(*residual, row)).for_each(|(y, r)| *y += r);
                    }
                    self.row_mut(*out, row)[*out_column..][..y.len()].copy_from_slice(&y);
                }
            }
            Op::HeadNorm { x, column, heads, norm } => {
                let gain = self.vector(norm.gain).to_vec();
                for row in 0..self.rows(*x, inputs) {
                    let heads = &mut self.row_mut(*x, row)[*column..][..heads * gain.len()];
                    head_norm_row(heads, &gain, norm.eps);
                }
            }
            Op::RopeAppend { qkv, shape, rope, layer } => {
                self.rope_append(*qkv, *shape, *rope, *layer, cache, inputs);
            }
            Op::Attention { qkv, shape, layer, out } => {
                self.attention(*qkv, *shape, *layer, *out, cache, inputs);
            }
            Op::SigmoidGate { .. }
            | Op::DeltaNet { .. }
            | Op::DenseMatmul { .. }
            | Op::Hadamard { .. } => {
                // No plan that is checked has one of these otherwise.
                if HAS_RECURRENT {
                    self.run_hybrid_op(op, cache, inputs);
                }
            }
            Op::Gate { gate, up, activation, out } => {
                for row in 0..self.rows(*out, inputs) {
                    let (g, u) = (self.linear_row(gate, row), self.linear_row(up, row));
                    for (h, (g, u)) in self.row_mut(*out, row).iter_mut().zip(g.iter().zip(&u)) {
                        *h = gate_output(*activation, *g, *u);
                    }
                }
            }
            Op::Head { x, table, out } => {
                for row in 0..self.rows(*out, inputs) {
                    let logits = self.logits(*table, *x, row);
                    self.row_mut(*out, row).copy_from_slice(&logits);
                }
            }
            Op::TopLogits { x, table, out } => {
                let capacity = self.width(*out);
                for (row, request) in inputs.top_logits.iter().enumerate() {
                    let mut best = vec![Ranked::PADDING; capacity];
                    top_logits_row(self.dense(*table), self.row(*x, row), request, &mut best);
                    let ranked = &mut self.buffers[out.0 as usize].ranked;
                    ranked[row * capacity..][..capacity].copy_from_slice(&best);
                }
            }
            Op::Argmax { x, table, out, .. } => {
                for (row, request) in inputs.argmax.iter().enumerate() {
                    let token = argmax_row(self.dense(*table), self.row(*x, row), request);
                    self.buffers[out.0 as usize].tokens[row] = token;
                }
            }
        }
    }

    /// Products of a row with all rows of a table.
    fn logits(&self, table: WeightId, x: BufferId, row: usize) -> Vec<f32> {
        let (table, x) = (self.dense(table), self.row(x, row));
        let mut scratch = vec![0.0; x.len()];
        (0..table.rows()).map(|output| head_logit(table, output, x, &mut scratch)).collect()
    }

    fn rms_norm(&mut self, x: BufferId, norm: Norm, out: BufferId, inputs: &BatchInputs) {
        let gather = self.plan.buffer(x).rows != self.plan.buffer(out).rows;
        for row in 0..self.rows(out, inputs) {
            let source = if gather { inputs.wanted[row] as usize } else { row };
            let mut normed = vec![0.0; self.width(x)];
            rms_norm_row(self.row(x, source), self.vector(norm.gain), norm.eps, &mut normed);
            self.row_mut(out, row).copy_from_slice(&normed);
        }
    }

    fn quantize(&mut self, x: BufferId, norm: Option<Norm>, out: BufferId, inputs: &BatchInputs) {
        let padded = padded_columns(self.width(x));
        let (group, groups) = self.groups(out);
        for row in 0..self.rows(out, inputs) {
            let mut values = self.row(x, row).to_vec();
            if let Some(norm) = norm {
                rms_norm_row(self.row(x, row), self.vector(norm.gain), norm.eps, &mut values);
            }
            let buffer = &mut self.buffers[out.0 as usize];
            let codes = &mut buffer.codes[row * padded..][..padded];
            let scales = &mut buffer.floats[row * groups..][..groups];
            match group {
                None => scales[0] = quantize_row(&values, codes).scale,
                Some(group) => quantize_groups(&values, group, codes, scales),
            }
        }
    }

    /// Columns of a group of a quantized buffer, and the scales of a row.
    fn groups(&self, id: BufferId) -> (Option<usize>, usize) {
        let BufferSpec { kind, width, .. } = self.plan.buffer(id);
        let group = if let BufferKind::Quantized { group } = kind { group } else { None };
        (group, scales_of_row(width, group))
    }

    fn linear_row(&self, linear: &Linear, row: usize) -> Vec<f32> {
        let matrix = self.ternary(linear.weight);
        let buffer = &self.buffers[linear.x.0 as usize];
        let padded = padded_columns(matrix.columns());
        let (group, groups) = self.groups(linear.x);
        let x = QuantizedRow {
            codes: &buffer.codes[row * padded..][..padded],
            scales: &buffer.floats[row * groups..][..groups],
            group,
        };
        let bias = linear.bias.map(|bias| (self.vector(bias.weight), bias.before_scale));
        let output = |output| {
            let bias = bias
                .map(|(values, before_scale)| OutputBias { value: values[output], before_scale });
            ternary_matmul_output(matrix, output, x, bias)
        };
        (0..matrix.rows()).map(output).collect()
    }

    fn rope_append(
        &mut self,
        qkv: BufferId,
        shape: HeadShape,
        rope: WeightId,
        layer: usize,
        cache: &mut HostCache,
        inputs: &BatchInputs,
    ) {
        let d = shape.head_dim;
        for row in 0..inputs.rows() {
            let position = inputs.positions[row] as usize;
            let table = &inputs.block_tables[inputs.slots[row] as usize];
            let mut values = self.row(qkv, row).to_vec();
            let (cos, sin) = self.rope(rope).at(position);
            let (rotated, dimensions) = (shape.query_width() + shape.kv_width(), 2 * cos.len());
            for head in values[..rotated].chunks_exact_mut(d) {
                rotate_head(&mut head[..dimensions], cos, sin);
            }
            for kv_head in 0..shape.kv_heads {
                let index = cache.vector_index(table, kv_head, position);
                let key = shape.query_width() + kv_head * d;
                let layer = &mut cache.layers_mut()[layer];
                layer.keys.store(index, &values[key..][..d]);
                layer.values.store(index, &values[key + shape.kv_width()..][..d]);
            }
            self.row_mut(qkv, row).copy_from_slice(&values);
        }
    }

    fn attention(
        &mut self,
        qkv: BufferId,
        shape: HeadShape,
        layer: usize,
        out: BufferId,
        cache: &HostCache,
        inputs: &BatchInputs,
    ) {
        let d = shape.head_dim;
        for row in 0..inputs.rows() {
            let position = inputs.positions[row] as usize;
            let table = &inputs.block_tables[inputs.slots[row] as usize];
            for head in 0..shape.heads {
                let kv_head = head / (shape.heads / shape.kv_heads);
                let query = &self.row(qkv, row)[head * d..][..d];
                let mut y = vec![0.0; d];
                attention_head(query, position, &cache.head(layer, table, kv_head), &mut y);
                self.row_mut(out, row)[head * d..][..d].copy_from_slice(&y);
            }
        }
    }
}
