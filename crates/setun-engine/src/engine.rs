//! The engine: a handle to the schedulers of a model.

mod beam_generation;
mod beams;
mod chat_prompt;
mod embed;
mod generate;
#[cfg(feature = "grammar")]
mod grammar;
mod lists;
mod memory;
mod observe;
mod resume;
mod score;
mod session;
#[cfg(all(test, not(target_family = "wasm")))]
mod slots_tests;
mod start;
mod tenant;
#[cfg(all(test, not(target_family = "wasm")))]
mod test_support;
mod thinking;
mod tools;
mod weak;

use std::sync::Arc;

use futures::channel::{mpsc::UnboundedSender, oneshot};
use setun_clock::Clock;
use setun_model::{CacheSalt, MemoryUse};
use setun_text::{ChatTemplate, SamplerOptions, TokenTable, Tokenizer};

pub use beam_generation::{BeamGeneration, BeamTexts};
pub use embed::Embedding;
pub use lists::ChatCompletion;
pub use score::{Classification, Score};
pub use session::Session;
pub(crate) use tools::ToolUse;
pub use weak::WeakEngine;

use chat_prompt::Reading;

use crate::{
    command::Command,
    device::{DeviceKind, DeviceReport, HeadType, SelfTest},
    engine_info::EngineInfo,
    error::Error,
    model_shape::ModelShape,
    options::{BackPressure, GenerateOptions, Prompt},
    parts::SelfTester,
    request_slots::RequestSlots,
    scheduler::PublishedMetrics,
};

/// A handle to a model that runs. Clones share it; it ends with its last handle and stream.
#[derive(Clone, Debug)]
pub struct Engine {
    pub(crate) schedulers: Arc<[Handle]>, // one or more: of equal models
    shared: Arc<Shared>,
    salt: Option<CacheSalt>, // of requests that have none
    tenant: Option<u64>,     // of its requests
}

/// The way to a scheduler.
#[derive(Debug)]
pub(crate) struct Handle {
    pub(crate) commands: UnboundedSender<Command>,
    slots: RequestSlots,
    metrics: PublishedMetrics,
}

impl Handle {
    fn new(
        commands: UnboundedSender<Command>,
        slots: RequestSlots,
        metrics: PublishedMetrics,
    ) -> Self {
        Self { commands, slots, metrics }
    }

    pub(crate) fn send(&self, command: Command) -> Result<(), Error> {
        self.commands.unbounded_send(command).map_err(|_| Error::Disposed)
    }

    /// Sends a command, and waits for its reply.
    async fn ask<T>(
        &self,
        command: impl FnOnce(oneshot::Sender<T>) -> Command,
    ) -> Result<T, Error> {
        let (reply, answer) = oneshot::channel();
        self.send(command(reply))?;
        answer.await.map_err(|_| Error::Disposed)
    }
}

pub(crate) struct Shared {
    shape: Option<ModelShape>,
    tokenizer: Option<Arc<dyn Tokenizer>>,
    template: Option<Arc<ChatTemplate>>,
    sampling: SamplerOptions,
    pub(crate) eos_tokens: Vec<u32>,
    context_length: usize,
    vocab_size: usize,
    weight_bytes: usize,
    head: HeadType,
    threads: usize,
    max_concurrent: usize,
    buffer: usize,
    back_pressure: BackPressure,
    defaults: GenerateOptions,
    has_draft: bool,
    devices: DeviceReport,
    self_tester: Option<Box<dyn SelfTester>>, // none of a custom model
    report: EngineInfo,
    warnings: Vec<String>,
    clock: Clock,
    #[cfg(feature = "grammar")]
    pub(crate) vocabulary: std::sync::OnceLock<Arc<setun_grammar::Vocabulary>>,
    #[cfg(feature = "grammar")]
    tool_grammars: grammar::ToolGrammars,
    /// The threads of the schedulers.
    #[cfg(not(target_family = "wasm"))]
    running: std::sync::Mutex<Vec<std::thread::JoinHandle<()>>>,
}

impl std::fmt::Debug for Shared {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Shared").field("report", &self.report).finish_non_exhaustive()
    }
}

/// What an engine can be built from.
pub trait IntoEngineBuilder {
    /// What takes the options and builds it.
    type Builder;

    /// A builder with the default options.
    fn into_engine_builder(self) -> Self::Builder;
}

impl Engine {
    /// Begins to build an engine from an opened model, from a reader of one, whose weights go to
    /// their device as they are read, or from a custom model.
    pub fn builder<M: IntoEngineBuilder>(model: M) -> M::Builder {
        model.into_engine_builder()
    }

    /// Lets go of this handle. Where it was the last one, waits until the generations under way have
    /// ended and all memory of the model is free.
    #[cfg(not(target_family = "wasm"))]
    pub fn close(self) {
        let Self { schedulers, shared, .. } = self;
        let is_last = Arc::strong_count(&schedulers) == 1;
        drop(schedulers);
        if !is_last {
            return;
        }
        for thread in crate::sync::lock(&shared.running).drain(..) {
            let _ = thread.join(); // one that panicked has let go, too
        }
    }

    /// The same engine with another default of [`cache_salt`](GenerateOptions::cache_salt), for whatever
    /// this handle begins: embeddings, scores and saved sessions, too.
    #[must_use]
    pub fn with_cache_salt(mut self, salt: impl Into<CacheSalt>) -> Self {
        self.salt = Some(salt.into());
        self
    }

    /// Tokens of a text, special ones as the tokenizer's post-processor says.
    ///
    /// # Errors
    ///
    /// If the model has no tokenizer, or it fails.
    pub fn tokenize(&self, text: &str) -> Result<Vec<u32>, Error> {
        self.encode(text, true, None)
    }

    /// Tokens of a text without those that the post-processor adds, such as a begin-of-text token.
    ///
    /// # Errors
    ///
    /// As [`tokenize`](Self::tokenize).
    pub fn tokenize_plain(&self, text: &str) -> Result<Vec<u32>, Error> {
        self.encode(text, false, None)
    }

    /// The tokens that end the model's texts.
    #[must_use]
    pub fn end_tokens(&self) -> &[u32] {
        &self.shared.eos_tokens
    }

    /// What grammars need of the tokenizer, for a module that compiles them elsewhere.
    ///
    /// # Errors
    ///
    /// If the model has no tokenizer.
    pub fn token_table(&self) -> Result<TokenTable, Error> {
        Ok(TokenTable::new(&**self.tokenizer()?, &self.shared.eos_tokens))
    }

    /// Text of tokens, without special ones.
    ///
    /// # Errors
    ///
    /// If the model has no tokenizer, or it fails.
    pub fn detokenize(&self, tokens: &[u32]) -> Result<String, Error> {
        Ok(self.tokenizer()?.decode(tokens, true)?)
    }

    /// Name of the model.
    #[must_use]
    pub fn model_name(&self) -> &str {
        &self.shared.report.model
    }

    /// Architecture and sizes of the model; none of a custom model.
    #[must_use]
    pub fn model_shape(&self) -> Option<&ModelShape> {
        self.shared.shape.as_ref()
    }

    /// What runs: the processor, a GPU, or several devices.
    #[must_use]
    pub fn backend(&self) -> DeviceKind {
        self.shared.report.backend
    }

    /// The device's level, for example `avx2`; of a GPU its own name.
    #[must_use]
    pub fn level(&self) -> &str {
        &self.shared.report.level
    }

    /// The devices that were looked at, and why this one runs.
    #[must_use]
    pub fn device_report(&self) -> &DeviceReport {
        &self.shared.devices
    }

    /// Repairs and assumptions made while the model was read, in sentences.
    #[must_use]
    pub fn warnings(&self) -> &[String] {
        &self.shared.warnings
    }

    /// Compares what the device computes with the definitions, on a small model of the kind of
    /// the one that is loaded. Generations under way go on.
    ///
    /// # Errors
    ///
    /// If there is no memory for it, or the model is one that is custom, which has no definitions.
    /// A device that differs is no error, but [`SelfTest::passed`] says so.
    pub async fn self_test(&self) -> Result<SelfTest, Error> {
        let missing = || self.missing("definition of a custom model", "a checkpoint");
        let tester = self.shared.self_tester.as_ref().ok_or_else(missing)?;
        let test = SelfTest::begun(self.backend(), self.level().to_owned());
        tester.test(&self.shared.devices, test).await
    }

    /// Threads that run.
    #[must_use]
    pub fn threads(&self) -> usize {
        self.shared.threads
    }

    /// Most positions of a sequence.
    #[must_use]
    pub fn context_length(&self) -> usize {
        self.shared.context_length
    }

    /// Number of tokens.
    #[must_use]
    pub fn vocab_size(&self) -> usize {
        self.shared.vocab_size
    }

    /// Bytes of the weights.
    #[must_use]
    pub fn weight_bytes(&self) -> usize {
        self.shared.weight_bytes
    }

    /// Bytes of memory that the model keeps now, after the step under way. The cache grows with
    /// use; [`release_memory`](Self::release_memory) and [`limit_cache`](Self::limit_cache) shrink it.
    ///
    /// # Errors
    ///
    /// If the engine has ended.
    pub async fn memory(&self) -> Result<MemoryUse, Error> {
        let mut sum = MemoryUse::default();
        for scheduler in self.schedulers.iter() {
            sum.add(&scheduler.ask(Command::Memory).await?);
        }
        Ok(sum)
    }

    /// How the head is kept: what [`HeadType::Auto`] came to.
    #[must_use]
    pub fn head_type(&self) -> HeadType {
        self.shared.head
    }

    /// Seconds that loading the model took.
    #[must_use]
    pub fn load_seconds(&self) -> f64 {
        self.shared.report.load_seconds
    }

    /// Whether the model has a chat template.
    #[must_use]
    pub fn has_chat_template(&self) -> bool {
        self.shared.template.is_some()
    }

    /// Options of generations that have none of their own.
    #[must_use]
    pub fn default_options(&self) -> &GenerateOptions {
        &self.shared.defaults
    }

    /// The sources of the model's chat templates, by their names.
    pub fn chat_templates(&self) -> impl Iterator<Item = (&str, &str)> {
        self.shared.template.iter().flat_map(|template| template.sources())
    }

    /// What sampling does by default.
    #[must_use]
    pub fn sampling_defaults(&self) -> &SamplerOptions {
        &self.shared.sampling
    }

    /// Tokens of a text. One that has more than `most` by its bytes alone is not tokenized.
    pub(crate) fn encode(
        &self,
        text: &str,
        add_special: bool,
        most: Option<usize>,
    ) -> Result<Vec<u32>, Error> {
        self.check_length(text, most)?;
        Ok(self.tokenizer()?.encode(text, add_special)?)
    }

    /// Refuses a text that has more tokens by its bytes alone.
    fn check_length(&self, text: &str, most: Option<usize>) -> Result<(), Error> {
        let Some(context) = most else { return Ok(()) };
        let tokens = self.tokenizer()?.min_tokens(text);
        if tokens > context { Err(Error::PromptTooLong { tokens, context }) } else { Ok(()) }
    }

    /// Tokens of a prompt: one or more, all of the vocabulary. It is read by the engine's defaults.
    pub(crate) fn tokens(&self, prompt: Prompt, must_fit: bool) -> Result<Vec<u32>, Error> {
        let reading = Reading::of(&self.shared.defaults, self.shared.clock.now());
        self.read_prompt(prompt, Reading { must_fit, ..reading })
    }

    /// The same for a request that says how its prompt is read.
    pub(crate) fn read_prompt(
        &self,
        prompt: Prompt,
        reading: Reading<'_>,
    ) -> Result<Vec<u32>, Error> {
        let tokens = match prompt {
            Prompt::Tokens(tokens) => tokens,
            Prompt::Text(text) => self.encode(&text, true, self.most_tokens(reading))?,
            Prompt::Chat(messages) => self.read_chat(&messages, reading)?,
        };
        let bad = |found: String, expected: String| Error::BadOption {
            option: "prompt",
            found,
            expected,
        };
        if tokens.is_empty() {
            return Err(bad("empty".into(), "one token or more".into()));
        }
        let vocab = self.shared.vocab_size;
        match tokens.iter().find(|&&token| token as usize >= vocab) {
            Some(token) => Err(bad(format!("token {token}"), format!("tokens below {vocab}"))),
            None => Ok(tokens),
        }
    }

    #[cfg(feature = "grammar")]
    pub(crate) fn shared(&self) -> &Shared {
        &self.shared
    }

    pub(crate) fn tokenizer(&self) -> Result<&Arc<dyn Tokenizer>, Error> {
        let missing = || self.missing("tokenizer", "tokenizer.json");
        self.shared.tokenizer.as_ref().ok_or_else(missing)
    }

    fn missing(&self, what: &'static str, expected: &'static str) -> Error {
        Error::Missing { model: self.shared.report.model.clone(), what, expected }
    }
}
