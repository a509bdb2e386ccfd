//! A step of the leader: between operations inputs go to the workers, and their outputs come back.

use std::{ops::Range, sync::Arc};

use setun_ops::{
    BatchInputs, BufferId, Op, OpsError, host_cache::HostCache, numeric::to_u32, plan::RowSet,
    top_logits::Ranked,
};

use super::CpuBackend;
use crate::{
    shards::{
        Shards,
        message::{ANSWER_WORDS, DONE, RUN, Words},
        pieces::Piece,
        ranked::{merge, push_request, request_of},
        rows_of,
    },
    step::CpuStep,
};

impl CpuBackend {
    /// Runs a step whose plan has pieces. May be dropped between operations: what workers answer then
    /// is passed over.
    pub(crate) async fn run_sharded(
        &mut self,
        step: &mut CpuStep,
        cache: &mut HostCache,
        inputs: &BatchInputs,
    ) -> Result<(), OpsError> {
        let Some(sharded) = step.sharded.as_ref().map(Arc::clone) else { return Ok(()) };
        let own = own_inputs(step, inputs);
        let mut next = 0;
        for (index, piece) in sharded.pieces.iter().enumerate() {
            let ready = piece.ready.max(next);
            self.run_ops(step, cache, &own, next..ready);
            let Some(shards) = &mut self.shards else { return Ok(()) };
            let request = Request { step: sharded.id, index, piece, inputs };
            request.send(shards, step)?;
            next = piece.op + 1;
            self.run_ops(step, cache, &own, ready..next);
            let Some(shards) = &mut self.shards else { return Ok(()) };
            request.receive(shards, step).await?;
        }
        self.run_ops(step, cache, &own, next..step.plan.ops().len());
        Ok(())
    }
}

/// The inputs with what the leader's own part of the vocabulary is asked.
fn own_inputs(step: &CpuStep, inputs: &BatchInputs) -> BatchInputs {
    let mut own = inputs.clone();
    let mut tables = step.plan.ops().iter().filter_map(|op| match op {
        Op::TopLogits { table, .. } => step.weights.shared(*table),
        _ => None,
    });
    if let Some(shared) = tables.next() {
        for request in &mut own.top_logits {
            *request = request_of(request, &tokens(&(0..shared.own)));
        }
    }
    own
}

/// A piece on its way to the workers and back.
struct Request<'a> {
    step: u32,
    index: usize,
    piece: &'a Piece,
    inputs: &'a BatchInputs,
}

impl Request<'_> {
    fn send(&self, shards: &mut Shards, step: &CpuStep) -> Result<(), OpsError> {
        shards.serial = shards.serial.wrapping_add(1);
        let (parts, workers) = (shards.parts(), shards.link.workers());
        let input = step.buffers.floats(self.piece.input);
        let values = &input.values[..self.rows(step, self.piece.input) * input.width];
        let is_ranked = matches!(&step.plan.ops()[self.piece.op], Op::TopLogits { .. });
        for worker in 0..workers {
            let mut head = Words::new(RUN);
            head.push(shards.serial);
            head.push(self.step);
            head.push_size(self.index);
            head.push_size(self.inputs.rows());
            head.push_size(self.inputs.wanted.len());
            if is_ranked {
                let tokens = tokens(&rows_of(self.piece.outputs, parts, worker + 1));
                for request in &self.inputs.top_logits {
                    push_request(&request_of(request, &tokens), &mut head);
                }
            }
            shards.link.send(worker, &[head.finish(), bytemuck::cast_slice(values)])?;
        }
        Ok(())
    }

    async fn receive(&self, shards: &mut Shards, step: &mut CpuStep) -> Result<(), OpsError> {
        let (parts, workers) = (shards.parts(), shards.link.workers());
        let mut answers = Vec::with_capacity(workers);
        for worker in 0..workers {
            answers.push(answer(shards, worker).await?);
        }
        let own = rows_of(self.piece.outputs, parts, 0);
        let parts: Vec<_> =
            (1..parts).map(|part| rows_of(self.piece.outputs, parts, part)).collect();
        match step.plan.ops()[self.piece.op] {
            Op::TopLogits { out, .. } => self.merge_ranked(step, out, &own, &parts, &answers),
            Op::TernaryMatmul { residual, out, out_column, .. } => {
                for (columns, answer) in parts.iter().zip(&answers) {
                    let first = out_column + columns.start;
                    self.write(step, (out, first), columns, residual, answer)?;
                }
                Ok(())
            }
            Op::Gate { out, .. } | Op::Head { out, .. } => {
                let mut parts = parts.iter().zip(&answers);
                parts.try_for_each(|(columns, answer)| {
                    self.write(step, (out, columns.start), columns, None, answer)
                })
            }
            _ => Ok(()), // no piece
        }
    }

    /// Puts a worker's outputs in their columns of a buffer, plus the residual.
    fn write(
        &self,
        step: &mut CpuStep,
        (out, first): (BufferId, usize),
        columns: &Range<usize>,
        residual: Option<BufferId>,
        answer: &[u8],
    ) -> Result<(), OpsError> {
        let (rows, width) = (self.rows(step, out), columns.len());
        check_len(answer, rows * width * size_of::<f32>())?;
        let in_place = residual == Some(out);
        step.buffers.write_floats(out, |buffers, out| {
            let products = answer.chunks_exact((width * size_of::<f32>()).max(1));
            for (row, products) in products.enumerate().take(rows) {
                let begin = row * out.width + first;
                let y = &mut out.values[begin..begin + width];
                let products =
                    products.as_chunks().0.iter().map(|bytes| f32::from_ne_bytes(*bytes));
                match residual {
                    None => y.iter_mut().zip(products).for_each(|(y, product)| *y = product),
                    Some(_) if in_place => {
                        y.iter_mut().zip(products).for_each(|(y, product)| *y += product);
                    }
                    Some(residual) => {
                        let residual = &buffers.floats(residual).row(row)[columns.clone()];
                        for (y, (product, residual)) in y.iter_mut().zip(products.zip(residual)) {
                            *y = product + residual;
                        }
                    }
                }
            }
        });
        Ok(())
    }

    /// Merges the workers' ranked rows with the leader's own, in their buffer.
    fn merge_ranked(
        &self,
        step: &mut CpuStep,
        out: BufferId,
        own: &Range<usize>,
        parts: &[Range<usize>],
        answers: &[Vec<u8>],
    ) -> Result<(), OpsError> {
        let (rows, capacity) = (self.rows(step, out), step.plan.buffer(out).width);
        let bytes = rows * capacity * size_of::<Ranked>();
        answers.iter().try_for_each(|answer| check_len(answer, bytes))?;
        let answers: Vec<Vec<Ranked>> =
            answers.iter().map(|answer| bytemuck::pod_collect_to_vec(answer)).collect();
        step.buffers.write_ranked(out, |_, out| {
            let rows = out.values.chunks_exact_mut(capacity.max(1)).zip(&self.inputs.top_logits);
            for (index, (row, request)) in rows.enumerate() {
                let own_row = row.to_vec();
                let mut ranked = vec![(tokens(own).start, own_row.as_slice())];
                for (part, answer) in parts.iter().zip(&answers) {
                    let row = &answer[index * capacity..(index + 1) * capacity];
                    ranked.push((tokens(part).start, row));
                }
                merge(request, &ranked, row);
            }
        });
        Ok(())
    }

    /// Rows of this step that a buffer holds.
    fn rows(&self, step: &CpuStep, buffer: BufferId) -> usize {
        match step.plan.buffer(buffer).rows {
            RowSet::Batch => self.inputs.rows(),
            RowSet::Wanted => self.inputs.wanted.len(),
        }
    }
}

/// What a worker answers to the last request; those to earlier ones, of a step that was given up, are
/// passed over.
async fn answer(shards: &mut Shards, worker: usize) -> Result<Vec<u8>, OpsError> {
    loop {
        let mut bytes = shards.link.receive(worker).await?;
        let head = ANSWER_WORDS * size_of::<u32>();
        if bytes.len() < head {
            return Err(lost(worker, "its answer has no head"));
        }
        let values = bytes.split_off(head);
        let [serial, status]: [u32; ANSWER_WORDS] = bytemuck::pod_read_unaligned(&bytes);
        if status != DONE {
            return Err(lost(worker, &String::from_utf8_lossy(&values)));
        }
        if serial == shards.serial {
            return Ok(values);
        }
    }
}

fn check_len(answer: &[u8], expected: usize) -> Result<(), OpsError> {
    let found = answer.len();
    if found == expected {
        return Ok(());
    }
    Err(OpsError::Length { what: "bytes of a worker's answer", expected, found })
}

fn lost(worker: usize, reason: &str) -> OpsError {
    OpsError::DeviceLost { reason: format!("worker {worker} of a sharded model: {reason}") }
}

/// Rows of a table as tokens, whose numbers fit.
fn tokens(rows: &Range<usize>) -> Range<u32> {
    to_u32(rows.start)..to_u32(rows.end)
}
