//! Memory that all steps share: one step runs after the other, and what it leaves is read before
//! the next.

use setun_ops::{
    OpsError,
    plan::{BufferKind, BufferSpec},
    quantize::scales_of_row,
    ternary::padded_columns,
    top_logits::Ranked,
};

use crate::{executor::Executor, launch::Scratch};

/// Most steps that follow each other: tokens of this many are kept until they are read.
pub(crate) const MAX_MULTI_STEPS: usize = 16;

/// Buffers by their places in plans, each as large as the largest step needs it.
#[derive(Debug)]
pub(crate) struct Arena<B> {
    buffers: Vec<Option<(B, u64)>>,
    scratch: [Option<(B, u64)>; 3],
    /// Another after each growth: what was bound before is bound to memory that is gone.
    pub(crate) number: u64,
}

impl<B: Clone> Arena<B> {
    pub(crate) fn new() -> Self {
        Self { buffers: vec![], scratch: [None, None, None], number: 0 }
    }

    /// Makes room for a step.
    pub(crate) fn reserve<E: Executor<Buffer = B>>(
        &mut self,
        executor: &mut E,
        buffers: impl ExactSizeIterator<Item = u64>,
        scratch: [u64; 3],
    ) -> Result<(), OpsError> {
        if self.buffers.len() < buffers.len() {
            self.buffers.resize_with(buffers.len(), || None);
        }
        let places = self.buffers.iter_mut().zip(buffers).map(|pair| (pair, "a buffer"));
        let scratch = self.scratch.iter_mut().zip(scratch).map(|pair| (pair, "scratch memory"));
        for ((place, bytes), what) in places.chain(scratch) {
            if bytes > 0 && place.as_ref().is_none_or(|(_, has)| *has < bytes) {
                // Also where that fails: what is bound to this memory must not be played again.
                self.number += 1;
                *place = None;
                *place = Some((executor.create_buffer(what, bytes)?, bytes));
            }
        }
        Ok(())
    }

    /// Whether a step finds room as it is.
    pub(crate) fn has_room(
        &self,
        buffers: impl ExactSizeIterator<Item = u64>,
        scratch: [u64; 3],
    ) -> bool {
        let has = |place: Option<&Option<(B, u64)>>, bytes: u64| {
            bytes == 0 || place.and_then(Option::as_ref).is_some_and(|(_, has)| *has >= bytes)
        };
        buffers.enumerate().all(|(index, bytes)| has(self.buffers.get(index), bytes))
            && self.scratch.iter().zip(scratch).all(|(place, bytes)| has(Some(place), bytes))
    }

    pub(crate) fn buffer(&self, index: usize) -> Option<&B> {
        self.buffers.get(index)?.as_ref().map(|(buffer, _)| buffer)
    }

    pub(crate) fn scratch(&self, kind: Scratch) -> Option<&B> {
        self.scratch[kind as usize].as_ref().map(|(buffer, _)| buffer)
    }

    /// Bytes of all of it.
    pub(crate) fn bytes(&self) -> u64 {
        self.buffers.iter().chain(&self.scratch).flatten().map(|(_, bytes)| bytes).sum()
    }
}

/// Bytes of a buffer on a device: `wgsl/quantize.wgsl` describes the form of a quantized one.
pub(crate) fn buffer_bytes(spec: BufferSpec, rows: usize) -> u64 {
    let row = match spec.kind {
        BufferKind::F32 => 4 * spec.width,
        BufferKind::Quantized { group } => {
            let sums = usize::from(group.is_none());
            padded_columns(spec.width) + 4 * (scales_of_row(spec.width, group) + sums)
        }
        BufferKind::Ranked => spec.width * size_of::<Ranked>(),
        BufferKind::Tokens => spec.width * size_of::<u32>() * MAX_MULTI_STEPS,
    };
    // Kernels read vectors of four words.
    ((rows * row).next_multiple_of(16)) as u64
}
