//! Running models step by step, without an engine.

use std::path::Path;

use setun::{
    CacheType, Device, DeviceKind, DeviceOptions, Model,
    forward::{
        Batch, Model as Forward, Outputs, PagedCache, RequestedOutput, SequenceId, Transformer,
        TransformerOptions,
    },
    ops::Backend,
};

use crate::golden::max_difference;

/// A model on a device, with a cache.
pub struct Runner {
    model: Box<dyn Forward>,
    cache: PagedCache,
}

/// A row of logits as bits, for exact comparison.
pub type Bits = Vec<u32>;

impl Runner {
    /// Loads a model.
    ///
    /// # Panics
    ///
    /// If it cannot be loaded.
    #[must_use]
    pub fn new(model: Model, options: DeviceOptions) -> Self {
        Self::over(model.load_onto(options).expect("the device is here").model)
    }

    /// Opens a model, whose cache has all bits.
    ///
    /// # Panics
    ///
    /// If it cannot be loaded.
    #[must_use]
    pub fn open(path: impl AsRef<Path>, device: &Device) -> Self {
        Self::new(Model::open(path).expect("a model"), exact(device))
    }

    /// Runs a model that is on its device.
    #[must_use]
    pub fn over(model: Box<dyn Forward>) -> Self {
        let cache = PagedCache::for_model(&*model, 1 << 16);
        Self { model, cache }
    }

    /// A new sequence.
    pub fn sequence(&mut self) -> SequenceId {
        self.cache.create()
    }

    /// Another sequence with the same contents.
    ///
    /// # Panics
    ///
    /// If the sequence is gone.
    pub fn fork(&mut self, sequence: SequenceId) -> SequenceId {
        self.cache.fork(sequence).expect("a sequence")
    }

    /// Drops positions from `len` on.
    ///
    /// # Panics
    ///
    /// If the sequence is gone.
    pub fn truncate(&mut self, sequence: SequenceId, len: usize) {
        self.cache.truncate(sequence, len).expect("a sequence");
    }

    /// Forgets a sequence, and gives back the memory that no other has: what these have moves.
    ///
    /// # Panics
    ///
    /// If the model fails.
    pub fn remove_and_compact(&mut self, sequence: SequenceId) {
        self.cache.remove(sequence);
        self.cache.compact();
        pollster::block_on(self.model.shrink(&mut self.cache)).expect("less memory");
    }

    /// One step: tokens for each sequence, in order; logits of all rows.
    ///
    /// # Panics
    ///
    /// If the step fails.
    pub fn step(&mut self, runs: &[(SequenceId, &[u32])]) -> Vec<Vec<f32>> {
        let mut batch = Batch::default();
        for &(sequence, tokens) in runs {
            let position = self.cache.len(sequence).expect("a sequence");
            self.cache.extend(sequence, tokens.len()).expect("room in the cache");
            batch.push_run(sequence, position, tokens, RequestedOutput::Logits);
        }
        batch.request_logits(0);
        let mut outputs = Outputs::default();
        pollster::block_on(self.model.forward(&batch, &mut self.cache, &mut outputs))
            .expect("a step");
        outputs.logits().chunks_exact(self.model.vocab_size()).map(<[f32]>::to_vec).collect()
    }

    /// One step of tokens with drafts after them, which are then rejected; logits of the tokens.
    ///
    /// # Panics
    ///
    /// If the step fails.
    pub fn step_with_drafts(
        &mut self,
        sequence: SequenceId,
        tokens: &[u32],
        drafts: &[u32],
    ) -> Vec<Vec<f32>> {
        let end = self.cache.len(sequence).expect("a sequence") + tokens.len();
        self.cache.mark_tentative(sequence, drafts.len()).expect("a sequence");
        let mut rows = self.step(&[(sequence, &[tokens, drafts].concat())]);
        rows.truncate(tokens.len());
        self.truncate(sequence, end);
        rows
    }

    /// Logits of all positions of a text, in chunks.
    pub fn logits(&mut self, tokens: &[u32], chunk: usize) -> Vec<Vec<f32>> {
        let sequence = self.sequence();
        let rows = tokens.chunks(chunk).flat_map(|chunk| self.step(&[(sequence, chunk)]));
        let rows = rows.collect();
        self.cache.remove(sequence);
        rows
    }

    /// Greedy continuation: `count` tokens.
    pub fn greedy(&mut self, prompt: &[u32], count: usize) -> Vec<u32> {
        let sequence = self.sequence();
        let mut row = self.step(&[(sequence, prompt)]).pop().unwrap_or_default();
        let mut tokens = vec![];
        while tokens.len() < count {
            let token = argmax(&row);
            tokens.push(token);
            row = self.step(&[(sequence, &[token])]).pop().unwrap_or_default();
        }
        tokens
    }
}

/// A device with a cache that has all bits.
#[must_use]
pub fn exact(device: &Device) -> DeviceOptions {
    DeviceOptions { device: device.clone(), cache: CacheType::F32, ..DeviceOptions::default() }
}

/// A model on a backend.
///
/// # Panics
///
/// If it cannot be loaded.
pub fn transformer<B: Backend>(
    path: impl AsRef<Path>,
    backend: B,
    options: TransformerOptions,
) -> Transformer<B> {
    let model = Model::open(path).expect("a model");
    let (config, weights) = (model.config().clone(), model.weights().clone());
    Transformer::new(backend, config, weights, options).expect("a model")
}

/// Logits may differ by so much where no code lies at a tie.
pub const CLOSE: f32 = 1e-3;

/// And by so much where one has flipped.
pub const FLIPPED: f32 = 0.6;

/// Margins beyond this must give the same token.
pub const MARGIN: f32 = 0.5;

/// The number of rows that are [`CLOSE`].
///
/// # Panics
///
/// If a row differs by more than a flipped code explains.
#[must_use]
pub fn assert_near(expected: &[Vec<f32>], found: &[Vec<f32>], what: &str) -> usize {
    assert_eq!(expected.len(), found.len(), "{what}");
    let mut close = 0;
    for (position, (a, b)) in expected.iter().zip(found).enumerate() {
        let most = max_difference(a, b);
        assert!(most <= FLIPPED, "{what}, position {position}: logits differ by {most}");
        close += usize::from(most <= CLOSE);
        if margin(a) > MARGIN {
            assert_eq!(argmax(a), argmax(b), "{what}, position {position}");
        }
    }
    close
}

/// How far the best logit is ahead.
#[must_use]
pub fn margin(row: &[f32]) -> f32 {
    let best = argmax(row) as usize;
    let others = row.iter().enumerate().filter(|(index, _)| *index != best);
    row[best] - others.fold(f32::NEG_INFINITY, |most, (_, logit)| most.max(*logit))
}

/// Every level of the processor that runs here.
#[must_use]
pub fn devices() -> Vec<Device> {
    let levels = setun::devices().into_iter().filter(|info| info.device == DeviceKind::Cpu);
    levels.filter_map(|info| info.select).collect()
}

/// The place of the largest value, the first of equals.
#[must_use]
pub fn argmax(row: &[f32]) -> u32 {
    let mut best = 0;
    for (index, value) in row.iter().enumerate() {
        if *value > row[best] {
            best = index;
        }
    }
    u32::try_from(best).unwrap_or(u32::MAX)
}

/// Rows as bits.
#[must_use]
pub fn bits(rows: &[Vec<f32>]) -> Vec<Bits> {
    rows.iter().map(|row| row.iter().map(|value| value.to_bits()).collect()).collect()
}
