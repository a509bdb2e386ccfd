//! Models split into stages, and a sequence of steps that takes every way through one.

use std::path::Path;

use setun::{
    checkpoint::ModelConfig,
    forward::{
        Batch, BatchRow, LayerRange, Layout, Model, ModelError, Outputs, PagedCache,
        RequestedOutput, Row, SequenceId, SplitBuilder, StageBuilder, TransformerOptions, Weights,
        split::{AnyStage, AnyStageBuilder},
    },
    ops::{Backend, WeightId, top_logits::TopLogitsRequest},
};

use crate::checkpoint;

/// Makes the builder of a part on a backend of the caller's choice.
pub type NewStage<'a> =
    Box<dyn FnOnce(ModelConfig, &Layout, LayerRange, TransformerOptions) -> AnyStageBuilder + 'a>;

/// A stage on a backend.
///
/// # Panics
///
/// What it makes panics where the part is of another model.
pub fn on<'a, B>(backend: B) -> NewStage<'a>
where
    B: Backend<Weight: Send, Prepared: Send, Cache: Send> + Send + 'static,
{
    Box::new(|config, layout, part, options| {
        StageBuilder::new(backend, config, layout, part, options).expect("a stage").into()
    })
}

/// The stages of the model in a folder, this many layers each.
///
/// # Errors
///
/// If the layers do not add up, or a backend refuses a weight.
///
/// # Panics
///
/// If there is no model that can be read.
pub fn stages(
    folder: &Path,
    stages: Vec<(usize, NewStage<'_>)>,
    options: TransformerOptions,
) -> Result<Vec<AnyStage>, ModelError> {
    let (config, Weights { layout, data, .. }) = checkpoint::weights(folder);
    let layers: Vec<usize> = stages.iter().map(|stage| stage.0).collect();
    let parts = LayerRange::cut(&layers, config.layers.len())?;
    let stages = stages.into_iter().zip(parts);
    let new = |((_, new), part): ((usize, NewStage<'_>), LayerRange)| {
        new(config.clone(), &layout, part, options)
    };
    let mut builder = SplitBuilder::new(stages.map(new).collect())?;
    for (id, weight) in (0..).map(WeightId).zip(data).collect::<Vec<_>>().into_iter().rev() {
        builder.add(id, weight)?;
    }
    builder.finish_stages()
}

/// What a step gave for a row, as bits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Given {
    /// All logits.
    Logits(Vec<u32>),
    /// Tokens and their logits.
    Ranked(Vec<(u32, u32)>),
    /// The hidden state.
    State(Vec<u32>),
}

/// A model with a cache.
pub struct Session {
    /// The model.
    pub model: Box<dyn Model>,
    /// Its cache.
    pub cache: PagedCache,
    /// All logits of the rows that wanted few: from the head alone where these were ranked.
    pub heads: Vec<Given>,
    outputs: Outputs,
}

impl Session {
    /// A model with an empty cache.
    #[must_use]
    pub fn new(model: impl Model + 'static) -> Self {
        let cache = PagedCache::for_model(&model, 1 << 10);
        Self { model: Box::new(model), cache, heads: vec![], outputs: Outputs::default() }
    }

    /// Extends sequences by tokens, as rows of a batch, with what is requested of all of them.
    ///
    /// # Panics
    ///
    /// If a sequence is gone.
    pub fn extend(&mut self, runs: &[(SequenceId, &[u32], &RequestedOutput)]) -> Batch {
        let mut batch = Batch::default();
        for &(sequence, tokens, wants) in runs {
            let first = self.cache.len(sequence).expect("a sequence");
            self.cache.extend(sequence, tokens.len()).expect("room in the cache");
            batch.rows.extend(tokens.iter().zip(first..).map(|(&token, position)| BatchRow {
                token,
                position,
                sequence,
                output: wants.clone(),
            }));
        }
        batch
    }

    /// Runs a batch.
    ///
    /// # Errors
    ///
    /// As [`Model::forward`].
    pub fn run(&mut self, batch: &Batch) -> Result<Vec<Given>, ModelError> {
        pollster::block_on(self.model.forward(batch, &mut self.cache, &mut self.outputs))?;
        let given: Vec<_> = self.outputs.rows().map(bits).collect();
        let wanted = batch.rows.iter().filter(|row| row.output != RequestedOutput::Nothing);
        let few = |output: &RequestedOutput| matches!(output, RequestedOutput::TopLogits(_));
        if wanted.clone().all(|row| few(&row.output)) {
            match given.first() {
                Some(Given::Ranked(_)) => {
                    let rows: Vec<_> = (0..given.len()).collect();
                    self.head(&rows[rows.len() / 2..])?; // some of them, then all
                    let heads = self.head(&rows)?;
                    self.heads.extend(heads);
                }
                _ => self.heads.extend_from_slice(&given),
            }
        }
        Ok(given)
    }

    fn head(&mut self, rows: &[usize]) -> Result<Vec<Given>, ModelError> {
        let mut outputs = Outputs::default();
        pollster::block_on(self.model.head_logits(rows, &mut outputs))?;
        Ok(outputs.rows().map(bits).collect())
    }

    /// Extends sequences and runs that.
    ///
    /// # Panics
    ///
    /// If a sequence is gone or the step fails.
    pub fn step(&mut self, runs: &[(SequenceId, &[u32], &RequestedOutput)]) -> Vec<Given> {
        let batch = self.extend(runs);
        self.run(&batch).expect("a step")
    }

    /// Chunked prompts, batches of mixed lengths and wants, decoding, forks, truncations, and an
    /// emptied cache: what each row of each step gave.
    ///
    /// # Panics
    ///
    /// If a step fails.
    pub fn everything(&mut self) -> Vec<Given> {
        const LOGITS: &RequestedOutput = &RequestedOutput::Logits;
        const NOTHING: &RequestedOutput = &RequestedOutput::Nothing;
        const STATE: &RequestedOutput = &RequestedOutput::HiddenState;
        let best = &RequestedOutput::TopLogits(TopLogitsRequest {
            k: 5,
            touched: vec![1, 4],
            ..<_>::default()
        });
        let text: Vec<u32> = (0..150).map(|i| i * 37 % 61).collect();
        let (a, b) = (self.cache.create(), self.cache.create());
        let mut given = self.step(&[(a, &text[..45], NOTHING)]);
        given.extend(self.step(&[(a, &text[45..60], best), (a, &text[60..61], LOGITS)]));
        given.extend(self.step(&[(b, &text[..7], best), (a, &text[61..62], best)]));
        let c = self.cache.fork(a).expect("a sequence");
        let other = [&text[5..40], &text[90..95]].concat();
        given.extend(self.step(&[(a, &text[62..63], LOGITS), (c, &other, LOGITS)]));
        self.cache.truncate(c, 63).expect("a sequence");
        for token in 7..10 {
            let next = [token];
            given.extend(self.step(&[(c, &next, best), (a, &next, best), (b, &next, best)]));
        }
        given.extend(self.step(&[(a, &text[80..81], best), (b, &text[80..81], LOGITS)]));
        given.extend(self.step(&[(b, &text[..90], STATE), (c, &text[..9], STATE)]));
        given.extend(self.step(&[(a, &text[..40], NOTHING), (c, &text[..1], STATE)]));
        for sequence in [a, b, c] {
            self.cache.remove(sequence);
        }
        let d = self.cache.create();
        given.extend(self.step(&[(d, &text, LOGITS)]));
        given
    }
}

fn bits(row: Row<'_>) -> Given {
    let all = |row: &[f32]| row.iter().map(|x| x.to_bits()).collect();
    match row {
        Row::Logits(row) => Given::Logits(all(row)),
        Row::HiddenState(row) => Given::State(all(row)),
        Row::Ranked(row) => {
            Given::Ranked(row.iter().map(|x| (x.token, x.logit.to_bits())).collect())
        }
    }
}
