//! A model for tests whose logits follow from all that the cache holds of a sequence.

use std::{
    sync::{Arc, Mutex},
    thread::sleep,
    time::Duration,
};

use futures::future::{FutureExt, LocalBoxFuture, ready};
use setun_model::{Batch, MemoryUse, Model, ModelError, Outputs, PagedCache, RequestedOutput};
use setun_ops::OpsError;
use setun_text::{Sampler, SamplerOptions, Step, Strategy, TextError};

pub(crate) const BLOCK_POSITIONS: usize = 4;

/// Remembers the token at each position of each block, as a transformer remembers keys and values.
/// Logits are pseudo-random numbers of the last tokens of a sequence, read back from its blocks.
#[derive(Clone)]
pub(crate) struct FakeModel {
    pub(crate) vocabulary: usize,
    pub(crate) context: usize,
    pub(crate) max_rows: usize,
    /// Only this many tokens tell the next.
    pub(crate) order: usize,
    /// Two models of one seed are the same.
    pub(crate) seed: u64,
    /// Logits are below this.
    pub(crate) spread: f32,
    /// The step of this number fails.
    pub(crate) fails_at: Option<usize>,
    /// As it loses its device then.
    pub(crate) is_device_lost: bool,
    /// A step takes so long, and as much more for each row as is said second.
    pub(crate) takes: [Duration; 2],
    /// Rows of each step.
    pub(crate) steps: Arc<Mutex<Vec<usize>>>,
    pub(crate) blocks: Vec<[u32; BLOCK_POSITIONS]>,
}

impl FakeModel {
    pub(crate) fn new(vocabulary: usize, seed: u64) -> Self {
        Self {
            vocabulary,
            context: 96,
            max_rows: 24,
            order: usize::MAX,
            seed,
            spread: 6.0,
            fails_at: None,
            is_device_lost: false,
            takes: [Duration::ZERO; 2],
            steps: Arc::default(),
            blocks: vec![],
        }
    }

    /// The logits after a text.
    pub(crate) fn logits(&self, text: &[u32]) -> Vec<f32> {
        let last = &text[text.len().saturating_sub(self.order)..];
        let state = last.iter().fold(self.seed, |state, &token| mix(state ^ u64::from(token)));
        let uniform = |token: u64| {
            let bits = mix(state ^ mix(token)) >> 48;
            f32::from(u16::try_from(bits).expect("16 bits")) / 65536.0
        };
        (0..self.vocabulary as u64).map(|token| uniform(token) * self.spread).collect()
    }

    fn copy(&mut self, cache: &mut PagedCache) {
        for &(from, to) in cache.copies() {
            self.blocks[to.0 as usize] = self.blocks[from.0 as usize];
        }
        cache.copies_made();
    }

    fn step(
        &mut self,
        batch: &Batch,
        cache: &mut PagedCache,
        outputs: &mut Outputs,
    ) -> Result<(), ModelError> {
        let rows = batch.rows.len();
        assert!((1..=self.max_rows).contains(&rows), "{rows} rows");
        let number = self.steps.lock().expect("steps").len();
        self.steps.lock().expect("steps").push(rows);
        if self.takes[0] > Duration::ZERO {
            sleep(self.takes[0] + self.takes[1] * u32::try_from(rows).expect("few"));
        }
        if self.fails_at == Some(number) && self.is_device_lost {
            return Err(OpsError::DeviceLost { reason: "on purpose".into() }.into());
        }
        if self.fails_at == Some(number) {
            return Err(OpsError::OutOfMemory { what: "a step", bytes: 1 }.into());
        }
        self.blocks
            .resize(cache.high_water_blocks().max(self.blocks.len()), [u32::MAX; BLOCK_POSITIONS]);
        self.copy(cache);
        let mut logits = vec![];
        for row in &batch.rows {
            assert!(row.position < cache.len(row.sequence)?, "a position that is reserved");
            let blocks = cache.blocks(row.sequence)?.to_vec();
            let block = blocks[row.position / BLOCK_POSITIONS];
            assert!(!cache.is_shared(block), "nobody else reads what is written");
            self.blocks[block.0 as usize][row.position % BLOCK_POSITIONS] = row.token;
            if row.output != RequestedOutput::Nothing {
                let place = |position: usize| {
                    let block = blocks[position / BLOCK_POSITIONS];
                    self.blocks[block.0 as usize][position % BLOCK_POSITIONS]
                };
                let text: Vec<u32> = (0..=row.position).map(place).collect();
                logits.extend(self.logits(&text));
            }
        }
        outputs.logits_mut(batch.wanted(), self.vocabulary).copy_from_slice(&logits);
        Ok(())
    }
}

fn mix(state: u64) -> u64 {
    let state =
        (state ^ (state >> 31)).wrapping_add(0x51ed_270b).wrapping_mul(0xd6e8_feb8_6659_fd93);
    (state ^ (state >> 29)).wrapping_mul(0xd6e8_feb8_6659_fd93) ^ (state >> 33)
}

impl Model for FakeModel {
    fn vocab_size(&self) -> usize {
        self.vocabulary
    }

    fn context_length(&self) -> usize {
        self.context
    }

    fn block_positions(&self) -> usize {
        BLOCK_POSITIONS
    }

    fn block_bytes(&self) -> usize {
        1
    }

    fn max_rows(&self) -> usize {
        self.max_rows
    }

    fn memory(&self) -> MemoryUse {
        MemoryUse { cache: self.blocks.len(), ..MemoryUse::default() }
    }

    fn shrink<'a>(
        &'a mut self,
        cache: &'a mut PagedCache,
    ) -> LocalBoxFuture<'a, Result<(), ModelError>> {
        self.copy(cache);
        self.blocks.truncate(cache.high_water_blocks());
        ready(Ok(())).boxed_local()
    }

    fn forward<'a>(
        &'a mut self,
        batch: &'a Batch,
        cache: &'a mut PagedCache,
        outputs: &'a mut Outputs,
    ) -> LocalBoxFuture<'a, Result<(), ModelError>> {
        ready(self.step(batch, cache, outputs)).boxed_local()
    }
}

/// A sampler as a strategy that counts what it is asked.
#[derive(Clone)]
pub(crate) struct Asked {
    pub(crate) sampler: Sampler,
    /// History and prompt tokens of each choice.
    pub(crate) steps: Vec<(Vec<u32>, usize)>,
}

impl Asked {
    pub(crate) fn new(options: SamplerOptions) -> Self {
        Self { sampler: Sampler::new(options).expect("sound options"), steps: vec![] }
    }

    pub(crate) fn greedy() -> Self {
        Self::new(SamplerOptions::default())
    }

    pub(crate) fn random() -> Self {
        Self::new(SamplerOptions {
            temperature: 1.3,
            repetition_penalty: 1.2,
            ..SamplerOptions::default()
        })
    }
}

impl Strategy for Asked {
    fn choose(&mut self, logits: &[f32], step: &Step<'_>) -> Result<u32, TextError> {
        self.steps.push((step.history.to_vec(), step.prompt_tokens));
        self.sampler.choose(logits, step)
    }
}
