//! A language model that keeps in each slot of the cache a hash of all tokens up to there.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use futures::{FutureExt, future::LocalBoxFuture};
use setun_model::{Batch, MemoryUse, Model, ModelError, Outputs, PagedCache, RequestedOutput};
use setun_ops::OpsError;

use super::{BLOCK_POSITIONS, CONTEXT, VOCAB};

/// What the slots of a block hold.
pub(super) type Slots = [u64; BLOCK_POSITIONS];

pub(super) struct Chain {
    pub(super) memory: Vec<Slots>,
    pub(super) max_blocks: Arc<AtomicUsize>, // that the system gives
    pub(super) seed: u64,                    // two of one say the same
    pub(super) is_counted: bool,             // its cache is told of
}

pub(super) fn mix(before: u64, token: u32) -> u64 {
    let mut bits = (before ^ u64::from(token)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    bits ^= bits >> 29;
    bits = bits.wrapping_mul(0xbf58_476d_1ce4_e5b9);
    bits ^ (bits >> 32)
}

/// Logits from −2 to 2.
pub(super) fn logits(hash: u64) -> [f32; VOCAB] {
    std::array::from_fn(|token| {
        let bits = mix(hash, u32::try_from(token).unwrap() + 100) >> 48;
        f32::from(u16::try_from(bits).unwrap()) / 16384.0 - 2.0
    })
}

impl Chain {
    fn slot(
        &mut self,
        cache: &PagedCache,
        row: &setun_model::BatchRow,
        position: usize,
    ) -> &mut u64 {
        let block = cache.blocks(row.sequence).unwrap()[position / BLOCK_POSITIONS];
        &mut self.memory[block.0 as usize][position % BLOCK_POSITIONS]
    }

    fn copy(&mut self, cache: &mut PagedCache) {
        for (from, to) in cache.copies() {
            self.memory[to.0 as usize] = self.memory[from.0 as usize];
        }
        cache.copies_made();
    }

    fn step(
        &mut self,
        batch: &Batch,
        cache: &mut PagedCache,
        outputs: &mut Outputs,
    ) -> Result<(), ModelError> {
        let blocks = cache.high_water_blocks();
        if blocks > self.memory.len() {
            if blocks > self.max_blocks.load(Ordering::Relaxed) {
                return Err(OpsError::OutOfMemory { what: "a cache", bytes: blocks }.into());
            }
            self.memory.resize(blocks, [u64::MAX; BLOCK_POSITIONS]);
        }
        self.copy(cache);
        let out = outputs.logits_mut(batch.wanted(), VOCAB);
        let mut out = out.chunks_exact_mut(VOCAB);
        for row in &batch.rows {
            let position = row.position;
            assert!(position < cache.len(row.sequence).unwrap(), "a reserved position");
            let block = cache.blocks(row.sequence).unwrap()[position / BLOCK_POSITIONS];
            assert!(!cache.is_shared(block), "nobody else reads what is written");
            let before = match position.checked_sub(1) {
                Some(before) => *self.slot(cache, row, before),
                None => self.seed,
            };
            let hash = mix(before, row.token);
            *self.slot(cache, row, position) = hash;
            if row.output != RequestedOutput::Nothing {
                out.next().unwrap().copy_from_slice(&logits(hash));
            }
        }
        Ok(())
    }
}

impl Model for Chain {
    fn vocab_size(&self) -> usize {
        VOCAB
    }

    fn context_length(&self) -> usize {
        CONTEXT
    }

    fn block_positions(&self) -> usize {
        BLOCK_POSITIONS
    }

    fn block_bytes(&self) -> usize {
        1
    }

    fn max_rows(&self) -> usize {
        24
    }

    fn memory(&self) -> MemoryUse {
        let cache = if self.is_counted { self.memory.len() } else { 0 };
        MemoryUse { cache, ..MemoryUse::default() }
    }

    fn shrink<'a>(
        &'a mut self,
        cache: &'a mut PagedCache,
    ) -> LocalBoxFuture<'a, Result<(), ModelError>> {
        self.copy(cache);
        self.memory.truncate(cache.high_water_blocks());
        std::future::ready(Ok(())).boxed_local()
    }

    fn forward<'a>(
        &'a mut self,
        batch: &'a Batch,
        cache: &'a mut PagedCache,
        outputs: &'a mut Outputs,
    ) -> LocalBoxFuture<'a, Result<(), ModelError>> {
        std::future::ready(self.step(batch, cache, outputs)).boxed_local()
    }
}
