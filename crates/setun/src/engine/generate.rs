//! Starting generations.

use std::{
    hash::{BuildHasher, Hasher, RandomState},
    sync::Arc,
};

use setun_text::{Message, StopStrings, StreamDecoder};
use web_time::{Instant, SystemTime, UNIX_EPOCH};

use super::{Engine, Handle, Shared};
use crate::{
    error::Error,
    options::{GenerateOptions, Meaning, Prompt},
    owner::Command,
    sequence::Request,
    stream::GenerationStream,
};

/// Seeds are kept below 2^53, so that a JavaScript number holds them.
const SEED_BITS: u32 = 53;

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
        let mut samples = self.samples(prompt, options, 1)?;
        samples.pop().ok_or(Error::Disposed)
    }

    /// Generates several times from one prompt, which is computed once. The first is what
    /// [`generate`](Self::generate) gives with the same seed; the others differ from it, if they
    /// are not greedy. Each stream goes on, pauses and ends by itself.
    ///
    /// # Errors
    ///
    /// As [`generate`](Self::generate); also if `count` is 0.
    pub fn samples(
        &self,
        prompt: impl Into<Prompt>,
        options: GenerateOptions,
        count: usize,
    ) -> Result<Vec<GenerationStream>, Error> {
        let asked = Instant::now();
        options.check()?;
        let most = self.shared.streams;
        if !(1..=most).contains(&count) {
            let expected = format!("1 to {most}, the streams of the engine");
            return Err(Error::BadOption { option: "count", found: count.to_string(), expected });
        }
        let (mut requests, owner) = self.requests(prompt.into(), options, count, asked)?;
        let stream = |request: &Request| {
            GenerationStream::new(Arc::clone(&request.queue), owner.commands.clone())
        };
        let streams = requests.iter().map(stream).collect();
        let mut first = requests.remove(0); // there is one
        first.siblings = requests;
        owner.send(Command::Generate(Box::new(first)))?;
        Ok(streams)
    }

    /// Requests for so many samples of a prompt, and who is to take them. The options are checked
    /// by themselves.
    pub(super) fn requests(
        &self,
        prompt: Prompt,
        options: GenerateOptions,
        count: usize,
        asked: Instant,
    ) -> Result<(Vec<Request>, &Handle), Error> {
        let prompt = self.tokens(prompt)?;
        let max_tokens = self.room(&prompt)?.min(options.max_tokens.unwrap_or(usize::MAX));
        let owner = self.idlest()?;
        let most = self.shared.most_waiting;
        let tickets = owner.tickets.take(count, most);
        let tickets = tickets.map_err(|waiting| Error::Busy { waiting, most })?;
        let sampler = options.sampler(&self.meaning())?;
        let stops = StopStrings::new(options.stop)?;
        let decoder = self.shared.tokenizer.clone();
        let decoder =
            decoder.map(|tokenizer| StreamDecoder::new(tokenizer, &prompt)).transpose()?;
        let seed = options.seed.unwrap_or_else(random_seed);
        let requests = (0..).zip(tickets).map(|(sample, ticket)| Request {
            max_tokens,
            sampler: sampler.clone(),
            seed,
            sample,
            siblings: vec![],
            search: None,
            decoder: decoder.clone(),
            stops: stops.clone(),
            eos_tokens: self.shared.eos_tokens.clone(),
            logprobs: options.logprobs,
            form: options.form.clone(),
            vocabulary: self.shared.vocab_size,
            lookahead: options.lookahead,
            queue: Arc::default(),
            asked,
            priority: options.priority,
            deadline: options.deadline.and_then(|time| asked.checked_add(time)),
            ticket: Some(ticket),
            prompt: prompt.clone(),
            load: Arc::clone(&owner.load),
        });
        Ok((requests.collect(), owner))
    }

    /// The owner with the fewest generations, of those that are there.
    fn idlest(&self) -> Result<&Handle, Error> {
        let there = self.owners.iter().filter(|owner| !owner.commands.is_closed());
        let least = there.min_by_key(|owner| Arc::strong_count(&owner.load));
        least.ok_or(Error::Disposed)
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

    /// What options mean for this model.
    fn meaning(&self) -> Meaning<'_> {
        let Shared { defaults, tokenizer, eos_tokens, vocab_size, .. } = &*self.shared;
        let tokenizer = tokenizer.as_deref();
        Meaning { defaults, tokenizer, end_tokens: eos_tokens, vocabulary: *vocab_size }
    }

    /// Tokens that fit after the prompt.
    fn room(&self, prompt: &[u32]) -> Result<usize, Error> {
        let (tokens, context) = (prompt.len(), self.shared.context_length);
        match context.checked_sub(tokens) {
            None | Some(0) => Err(Error::ContextFull { tokens, context }),
            Some(room) => Ok(room),
        }
    }
}

/// The standard library's random hash keys and the clock: enough for a seed, which is no secret.
fn random_seed() -> u64 {
    let mut hasher = RandomState::new().build_hasher();
    let elapsed = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    hasher.write_u128(elapsed.as_nanos());
    hasher.finish() >> (u64::BITS - SEED_BITS)
}
