//! Starting generations.

use std::sync::Arc;

use setun_clock::Instant;
use setun_model::CacheSalt;
use setun_text::{Message, SharedFilter, StopStrings, StreamDecoder, TextError};
use web_time::{SystemTime, UNIX_EPOCH};

use super::{Engine, Handle, Shared, ToolUse, chat_prompt::Reading, resume};
use crate::{
    command::Command,
    constraint::SharedConstraint,
    error::Error,
    event_queue::Queue,
    options::{GenerateOptions, Meaning, Prompt},
    request_slots::RequestSlot,
    sequence::{PromptRange, Request, TaskRequest},
    stream::GenerationStream,
    telemetry::Trace,
    thinking::Thinking,
};

/// Seeds are kept below 2^53, so that a JavaScript number holds them.
const SEED_BITS: u32 = 53;

/// What to run.
pub(crate) struct RequestInput {
    pub(crate) arrival_time: Instant,
    pub(crate) prompt: Vec<u32>,
    /// What the model is to see of it and of what was generated before, where that is not all.
    pub(crate) shortened: Option<Vec<u32>>,
    pub(crate) max_tokens: usize,
    pub(crate) task: TaskRequest,
    pub(crate) tool_use: Option<ToolUse>,
    pub(crate) thinking: Option<Thinking>,
}

/// Tokens that a draft model proposes at once, by default.
const DRAFT_LOOKAHEAD: usize = 12;

impl Engine {
    /// Generates from text, tokens or messages.
    ///
    /// # Errors
    ///
    /// If an option is wrong, the prompt does not fit, or the model lacks what the prompt
    /// needs. What goes wrong later comes through the stream.
    pub fn generate(
        &self,
        prompt: impl Into<Prompt>,
        options: GenerateOptions,
    ) -> Result<GenerationStream, Error> {
        let (input, options) = self.request_input(prompt.into(), options)?;
        self.submit_one(input, options)
    }

    /// The same after the tokens of a conversation, in whose answer reasoning is told apart.
    pub(super) fn continue_session(
        &self,
        tokens: Vec<u32>,
        options: GenerateOptions,
    ) -> Result<GenerationStream, Error> {
        let (mut input, options) = self.request_input(tokens.into(), options)?;
        input.thinking = self.thinking(&input.prompt, false, &options)?;
        self.submit_one(input, options)
    }

    /// Generates several times from one prompt, which is computed once. The first is what
    /// [`generate`](Self::generate) gives with the same seed; the others differ from it, if they
    /// are not greedy. Each stream goes on, pauses and ends by itself.
    ///
    /// # Errors
    ///
    /// As [`generate`](Self::generate); also if `n` is 0.
    pub fn generate_many(
        &self,
        prompt: impl Into<Prompt>,
        options: GenerateOptions,
        n: usize,
    ) -> Result<Vec<GenerationStream>, Error> {
        let (input, options) = self.request_input(prompt.into(), options)?;
        let (first, others) = self.submit(input, options, n)?;
        Ok(std::iter::once(first).chain(others).collect())
    }

    /// Options of a request that generates no token.
    pub(crate) fn prompt_only(&self) -> GenerateOptions {
        let GenerateOptions { timeout, priority, queue_timeout, .. } = self.shared.defaults;
        let options =
            GenerateOptions { timeout, priority, queue_timeout, ..GenerateOptions::new() };
        options.lookahead(0)
    }

    fn default_lookahead(&self) -> usize {
        if self.shared.has_draft { DRAFT_LOOKAHEAD } else { 0 }
    }

    /// What a prompt and options come to, with the engine's defaults.
    fn request_input(
        &self,
        prompt: Prompt,
        options: GenerateOptions,
    ) -> Result<(RequestInput, GenerateOptions), Error> {
        let mut options = self.with_defaults(&prompt, options);
        options.check()?;
        let arrival_time = self.shared.clock.now();
        let tool_use = self.prepare_tools(&prompt, &mut options)?;
        let is_chat = matches!(prompt, Prompt::Chat(_));
        let reading = Reading::of(&options, arrival_time);
        let begins_answer = !reading.continues;
        let prompt = self.read_prompt(prompt, reading)?;
        let thinking =
            if is_chat { self.thinking(&prompt, begins_answer, &options)? } else { None };
        let mut max_tokens = options.max_tokens.unwrap_or(usize::MAX);
        let mut shortened = None;
        match (self.room(&prompt), &options.context_overflow) {
            (Ok(room), None) => max_tokens = max_tokens.min(room),
            (Ok(_), Some(_)) => {}
            (Err(error), None) => return Err(error),
            (Err(_), Some(strategy)) => {
                let Shared { context_length, vocab_size, .. } = *self.shared;
                shortened = Some(strategy.shorten(&prompt, context_length, vocab_size)?);
            }
        }
        if !options.generated_tokens.is_empty() {
            resume::check(&options, max_tokens, self.shared.vocab_size)?;
            if let Some(strategy) = &options.context_overflow {
                let seen = shortened.unwrap_or_else(|| prompt.clone());
                shortened = Some(self.replay_context(seen, strategy, &options.generated_tokens)?);
            }
        }
        let prompt_range = PromptRange { from: 0, decoder: None };
        let is_reported = options.prompt_logprobs == Some(true);
        let task = TaskRequest::Generate(is_reported.then_some(prompt_range));
        let input =
            RequestInput { arrival_time, prompt, shortened, max_tokens, task, tool_use, thinking };
        Ok((input, options))
    }

    /// Starts one generation whose prompt is known to fit.
    pub(crate) fn submit_one(
        &self,
        input: RequestInput,
        options: GenerateOptions,
    ) -> Result<GenerationStream, Error> {
        self.submit(input, options, 1).map(|(stream, _)| stream)
    }

    /// Starts generations of one prompt, which is known to fit; the first, and the others.
    fn submit(
        &self,
        input: RequestInput,
        options: GenerateOptions,
        count: usize,
    ) -> Result<(GenerationStream, Vec<GenerationStream>), Error> {
        let RequestInput { arrival_time, prompt, shortened, max_tokens, .. } = input;
        let (mut task, tool_use, thinking) = (input.task, input.tool_use, input.thinking);
        let most = self.shared.max_concurrent;
        if !(1..=most).contains(&count) {
            let expected = format!("1 to {most}, `max_concurrent` of the engine");
            return Err(Error::BadOption { option: "n", found: count.to_string(), expected });
        }
        let (scheduler, mut slot) = self.take_slots(count.max(task.beams()))?;
        let end_tokens = self.end_tokens_of(&options)?;
        let sampler = options.sampler(&self.meaning(&end_tokens))?;
        let stops = StopStrings::new(options.stop)?;
        let decoder = self.decoder(&prompt)?;
        if let Some(PromptRange { from, decoder }) = task.prompt_range_mut() {
            *decoder = self.decoder(&prompt[..*from])?;
        }
        let seed = options.seed.unwrap_or_else(random_seed);
        let first_sample = options.sample_index.unwrap_or_default() as u64;
        let salt = options.cache_salt.map(CacheSalt::from).or_else(|| self.salt.clone());
        let calls = |sample| tool_use.as_ref().map(|tools| tools.reader(&prompt, [seed, sample]));
        let request = |sample, task, slot| Request {
            generated: options.generated_tokens.clone(),
            ended: None,
            shortened: shortened.clone(),
            max_tokens,
            salt: salt.clone(),
            context_length: self.shared.context_length,
            context_overflow: options.context_overflow.clone(),
            sampler: sampler.clone(),
            seed,
            sample: first_sample + sample,
            samples: vec![],
            decoder: decoder.clone(),
            thinking: thinking.clone(),
            calls: calls(first_sample + sample),
            stops: stops.clone(),
            filter: options.filter.as_ref().map(SharedFilter::begin),
            reasoning_filter: options.filter.as_ref().map(SharedFilter::begin),
            eos_tokens: end_tokens.clone(),
            logprobs: options.logprobs.unwrap_or_default(),
            top_logprobs: options.top_logprobs.unwrap_or_default(),
            prompt_progress: options.prompt_progress.unwrap_or_default(),
            task,
            constraint: options.constraint.clone(),
            vocabulary: self.shared.vocab_size,
            lookahead: options.lookahead.unwrap_or(self.default_lookahead()),
            queue: Arc::new(Queue::new(self.shared.buffer, self.shared.back_pressure)),
            clock: self.shared.clock.clone(),
            arrival_time,
            priority: options.priority.unwrap_or_default(),
            tenant: self.tenant,
            deadline: options.timeout.and_then(|time| arrival_time.checked_add(time)),
            queue_timeout: options.queue_timeout,
            trace: Trace::begin(prompt.len(), max_tokens, sample),
            slot: Some(slot),
            prompt: prompt.clone(),
        };
        let warnings: Arc<[String]> =
            options.constraint.iter().flat_map(SharedConstraint::warnings).collect();
        let stream = |request: &Request| {
            GenerationStream::new(Arc::clone(&request.queue), scheduler.commands.clone())
                .with_warnings(Arc::clone(&warnings))
        };
        let samples =
            (1..count as u64).map(|sample| request(sample, TaskRequest::default(), slot.split()));
        let samples: Vec<_> = samples.collect();
        let mut first = request(0, task, slot);
        first.samples = samples;
        first.replay()?;
        first.samples.iter_mut().try_for_each(Request::replay)?;
        let streams = (stream(&first), first.samples.iter().map(stream).collect());
        scheduler.send(Command::Generate(Box::new(first)))?;
        Ok(streams)
    }

    /// Slots of the scheduler with the fewest generations that has as many.
    fn take_slots(&self, count: usize) -> Result<(&Handle, RequestSlot), Error> {
        let mut refusal = Error::Disposed;
        for scheduler in self.by_load() {
            match scheduler.slots.take(count) {
                Ok(slot) => return Ok((scheduler, slot)),
                Err(taken) => refusal = Error::Busy { taken, most: scheduler.slots.most() },
            }
        }
        Err(refusal)
    }

    /// The scheduler with the fewest generations, of those that are there.
    pub(super) fn least_loaded(&self) -> Result<&Handle, Error> {
        self.by_load().into_iter().next().ok_or(Error::Disposed)
    }

    /// The schedulers that are there, those with the fewest generations first.
    fn by_load(&self) -> Vec<&Handle> {
        let there = self.schedulers.iter().filter(|scheduler| !scheduler.commands.is_closed());
        let mut there: Vec<_> = there.collect();
        there.sort_by_cached_key(|scheduler| scheduler.slots.taken());
        there
    }

    /// Answers a conversation, through the model's own chat template.
    ///
    /// # Errors
    ///
    /// As [`generate`](Self::generate); also if the model has no chat template, or it refuses
    /// the messages.
    pub fn chat(
        &self,
        messages: impl Into<Vec<Message>>,
        options: GenerateOptions,
    ) -> Result<GenerationStream, Error> {
        self.generate(Prompt::Chat(messages.into()), options)
    }

    /// Generates, and waits for the end. Not for use inside an async task.
    ///
    /// # Errors
    ///
    /// As [`generate`](Self::generate), and what goes wrong later.
    #[cfg(not(target_family = "wasm"))]
    pub fn complete(
        &self,
        prompt: impl Into<Prompt>,
        options: GenerateOptions,
    ) -> Result<crate::Completion, Error> {
        self.generate(prompt, options)?.wait()
    }

    /// A decoder of what comes after these tokens.
    fn decoder(&self, tokens: &[u32]) -> Result<Option<StreamDecoder>, Error> {
        let decoder = |tokenizer| StreamDecoder::new(tokenizer, tokens);
        Ok(self.shared.tokenizer.clone().map(decoder).transpose()?)
    }

    /// What options mean for this model.
    fn meaning<'a>(&'a self, end_tokens: &'a [u32]) -> Meaning<'a> {
        let Shared { sampling: defaults, tokenizer, vocab_size, .. } = &*self.shared;
        let tokenizer = tokenizer.as_deref();
        Meaning { defaults, tokenizer, end_tokens, vocabulary: *vocab_size }
    }

    /// Tokens that end a text: the model's, and those that are given.
    fn end_tokens_of(&self, options: &GenerateOptions) -> Result<Vec<u32>, Error> {
        let (given, vocabulary) = (&options.stop_token_ids, self.shared.vocab_size);
        match given.iter().find(|&&token| token as usize >= vocabulary) {
            Some(&token) => {
                let option = "stop_token_ids";
                Err(TextError::OptionToken { option, token, vocabulary }.into())
            }
            None => Ok([&self.shared.eos_tokens[..], given].concat()),
        }
    }

    /// Tokens that fit after the prompt.
    pub(super) fn room(&self, prompt: &[u32]) -> Result<usize, Error> {
        let (tokens, context) = (prompt.len(), self.shared.context_length);
        match context.checked_sub(tokens) {
            None | Some(0) => Err(Error::ContextFull { tokens, context }),
            Some(room) => Ok(room),
        }
    }
}

/// A seed of the system's random numbers, or of its clock where it has none. It is no secret.
fn random_seed() -> u64 {
    let seed = getrandom::u64().unwrap_or_else(|_| {
        let elapsed = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        (u64::from(elapsed.subsec_nanos()) << 32) ^ elapsed.as_secs()
    });
    seed >> (u64::BITS - SEED_BITS)
}
