//! Models for tests: one whose logits follow from all that the cache holds, one of closures.

use std::{
    future::poll_fn,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    task::Poll,
    time::Duration,
};

use futures::future::{FutureExt, LocalBoxFuture, ready};
use setun_clock::Clock;
use setun_model::{
    Batch, MemoryUse, Model, ModelError, Outputs, PagedCache, Profile, RequestedOutput,
};
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
    pub(crate) block_bytes: usize,
    /// The next token follows from this many tokens.
    pub(crate) order: usize,
    /// Two models of one seed are the same.
    pub(crate) seed: u64,
    /// Logits are below this.
    pub(crate) spread: f32,
    /// The step of this number fails.
    pub(crate) fails_at: Option<usize>,
    /// As it loses its device then.
    pub(crate) is_device_lost: bool,
    /// The clock that steps move: by the first time for a step, and by the second for each of its rows.
    pub(crate) takes: Option<(Clock, [Duration; 2])>,
    /// Rows of each step.
    pub(crate) steps: Arc<Mutex<Vec<usize>>>,
    /// Blocks that the system gives.
    pub(crate) max_blocks: Arc<AtomicUsize>,
    /// Whether their memory is reported.
    pub(crate) is_counted: bool,
    pub(crate) fails_to_shrink: bool,
    /// Where a device has the steps for a while: called at the beginning and the end of each.
    pub(crate) under_way: Option<Arc<dyn Fn(StepEvent) + Send + Sync>>,
    pub(crate) blocks: Vec<[u32; BLOCK_POSITIONS]>,
}

/// What happens to a step of a device.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum StepEvent {
    Begins,
    Ends,
}

impl FakeModel {
    pub(crate) fn new(vocabulary: usize, seed: u64) -> Self {
        Self {
            vocabulary,
            context: 96,
            max_rows: 24,
            block_bytes: 1,
            order: usize::MAX,
            seed,
            spread: 6.0,
            fails_at: None,
            is_device_lost: false,
            takes: None,
            steps: Arc::default(),
            max_blocks: Arc::new(AtomicUsize::new(usize::MAX)),
            is_counted: true,
            fails_to_shrink: false,
            under_way: None,
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

    /// The greedy continuation of a text.
    pub(crate) fn greedy(&self, text: &[u32], count: usize) -> Vec<u32> {
        let mut text = text.to_vec();
        for _ in 0..count {
            let logits = self.logits(&text);
            let best = (0..logits.len()).max_by(|&a, &b| logits[a].total_cmp(&logits[b]));
            text.push(u32::try_from(best.expect("logits")).expect("few"));
        }
        text.split_off(text.len() - count)
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
        if let Some((clock, [step, row])) = &self.takes {
            clock.advance(*step + *row * u32::try_from(rows).expect("few"));
        }
        if self.fails_at == Some(number) && self.is_device_lost {
            return Err(lost_device());
        }
        if self.fails_at == Some(number) {
            return Err(OpsError::OutOfMemory { what: "a step", bytes: 1 }.into());
        }
        let blocks = cache.high_water_blocks().max(self.blocks.len());
        if blocks > self.blocks.len() && blocks > self.max_blocks.load(Ordering::Relaxed) {
            return Err(OpsError::OutOfMemory { what: "a cache", bytes: blocks }.into());
        }
        self.blocks.resize(blocks, [u32::MAX; BLOCK_POSITIONS]);
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
        outputs.logits_mut(batch.wanted(), self.vocabulary)?.copy_from_slice(&logits);
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
        self.block_bytes
    }

    fn max_rows(&self) -> usize {
        self.max_rows
    }

    fn memory(&self) -> MemoryUse {
        let blocks = if self.is_counted { self.blocks.len() } else { 0 };
        MemoryUse { cache: self.block_bytes * blocks, ..MemoryUse::default() }
    }

    fn shrink<'a>(
        &'a mut self,
        cache: &'a mut PagedCache,
    ) -> LocalBoxFuture<'a, Result<(), ModelError>> {
        if self.fails_to_shrink {
            return ready(Err(lost_device())).boxed_local();
        }
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
        async {
            let Some(under_way) = self.under_way.clone() else {
                return self.step(batch, cache, outputs);
            };
            under_way(StepEvent::Begins);
            once().await;
            let result = self.step(batch, cache, outputs);
            under_way(StepEvent::Ends);
            result
        }
        .boxed_local()
    }
}

/// A lost device, on purpose.
pub(crate) fn lost_device() -> ModelError {
    OpsError::DeviceLost { reason: "on purpose".into() }.into()
}

/// Pending once.
pub(crate) async fn once() {
    let mut is_first = true;
    poll_fn(|context| {
        if std::mem::take(&mut is_first) {
            context.waker().wake_by_ref();
            Poll::Pending
        } else {
            Poll::Ready(())
        }
    })
    .await;
}

/// Called in each step, over outputs that are all 0.
type StepClosure =
    dyn FnMut(&Batch, &mut PagedCache, &mut Outputs) -> Result<(), ModelError> + Send;

/// Called where the model is to choose several steps by itself.
type ArgmaxClosure = dyn FnMut(&Batch, &PagedCache, usize, &mut Vec<u32>) + Send;

/// Called for rows that the last step left undecided, over logits that are all 0.
type HeadClosure = dyn FnMut(&[usize], &mut Outputs) -> Result<(), ModelError> + Send;

/// A model that remembers nothing, of some size.
pub(crate) struct ClosureModel {
    pub(crate) vocabulary: usize,
    pub(crate) context: usize,
    pub(crate) max_rows: usize,
    step: Box<StepClosure>,
    /// Most steps that it makes by itself, and how.
    pub(crate) multi_step: Option<(usize, Box<ArgmaxClosure>)>,
    /// Ranked logits that its head gives alone.
    pub(crate) head: Option<Box<HeadClosure>>,
    /// Whether its steps are timed where that is requested.
    pub(crate) has_times: bool,
    profile: Option<Profile>,
}

impl ClosureModel {
    pub(crate) fn new(
        vocabulary: usize,
        context: usize,
        step: impl FnMut(&Batch, &mut PagedCache, &mut Outputs) -> Result<(), ModelError>
        + Send
        + 'static,
    ) -> Self {
        let step = Box::new(step);
        let (max_rows, multi_step, head, profile) = (64, None, None, None);
        Self { vocabulary, context, max_rows, step, multi_step, head, has_times: true, profile }
    }
}

impl Model for ClosureModel {
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
        MemoryUse::default()
    }

    fn forward<'a>(
        &'a mut self,
        batch: &'a Batch,
        cache: &'a mut PagedCache,
        outputs: &'a mut Outputs,
    ) -> LocalBoxFuture<'a, Result<(), ModelError>> {
        outputs.logits_mut(batch.wanted(), self.vocabulary).expect("memory").fill(0.0);
        if let Some(profile) = &mut self.profile {
            *profile = Profile { steps: 1, rows: batch.rows.len(), ..Profile::default() };
        }
        ready((self.step)(batch, cache, outputs)).boxed_local()
    }

    fn head_logits<'a>(
        &'a mut self,
        rows: &'a [usize],
        outputs: &'a mut Outputs,
    ) -> LocalBoxFuture<'a, Result<(), ModelError>> {
        outputs.logits_mut(rows.len(), self.vocabulary).expect("memory").fill(0.0);
        let head = self.head.as_mut().expect("a model that ranks");
        ready(head(rows, outputs)).boxed_local()
    }

    fn max_multi_steps(&self) -> usize {
        let most = self.multi_step.as_ref().map_or(0, |(most, _)| *most);
        if self.profile.is_some() { most.min(1) } else { most }
    }

    fn run_multi_step<'a>(
        &'a mut self,
        batch: &'a Batch,
        cache: &'a mut PagedCache,
        steps: usize,
        tokens: &'a mut Vec<u32>,
    ) -> LocalBoxFuture<'a, Result<(), ModelError>> {
        let (_, choose) = self.multi_step.as_mut().expect("a model that chooses");
        tokens.clear();
        choose(batch, cache, steps, tokens);
        ready(Ok(())).boxed_local()
    }

    fn set_profiled(&mut self, profiled: bool) {
        self.profile = profiled.then(Profile::default);
    }

    fn profile(&self) -> Option<&Profile> {
        self.profile.as_ref().filter(|_| self.has_times)
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
