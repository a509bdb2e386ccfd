//! One generation, as its scheduler sees it.

mod beam_search;
mod constraint_state;
mod outputs_needed;
mod pool;
mod prompt_logprobs;
mod request;
mod residency;
mod task;
mod tokens;

use std::sync::Arc;

pub(crate) use constraint_state::{Away, Prepared, SequenceConstraint};
pub(crate) use pool::Pool;
pub(crate) use prompt_logprobs::MAX_PROMPT_LOGPROB_ROWS;
use request::{Decoded, TextEnd};
pub(crate) use request::{PromptRange, Request, SearchRequest, TaskRequest};
pub(crate) use residency::Wait;
use setun_clock::Instant;
use setun_model::CacheSalt;
use setun_text::SamplerState;
use task::Task;
pub(crate) use tokens::Next;

use crate::{
    constraint::SharedConstraint,
    error::Error,
    event::{Event, FinishReason, PromptProgress},
    event_queue::{Demand, Queue},
    speculation::Lookahead,
};

/// A generation: its tokens, and how many of them are in the cache while it has a place there.
#[derive(Debug)]
pub(crate) struct Sequence {
    request: Request,
    /// The earlier of two with one priority goes first.
    pub(crate) arrival: u64,
    tokens: Vec<u32>,          // prompt and generated
    context: Vec<u32>,         // what the model sees of them
    cached_tokens: usize,      // of the prompt, found in the cache at first
    cached: usize,             // tokens whose keys and values are in the cache
    full_logits_until: usize,  // this many generated tokens take all logits
    full_logits_tokens: usize, // that take all logits once the best do not decide
    begins_again: bool,        // as a device chose no token
    lookahead: Lookahead,
    constraint: Option<SequenceConstraint>,
    task: Task,
    sampling: SamplerState,
    entered: Option<Instant>, // when it first had a place in the cache
    first_token: Option<Instant>,
    last_token: Option<Instant>,
    wait: Option<Wait>, // for the last token, until it is taken note of
}

impl Sequence {
    pub(crate) fn new(mut request: Request, arrival: u64) -> Self {
        let task = Task::new(&mut request);
        let tokens = [&request.prompt[..], &request.generated].concat();
        let context = request.shortened.clone().unwrap_or_else(|| tokens.clone());
        let lookahead = Lookahead::new(request.lookahead);
        let begin = |constraint: &SharedConstraint| {
            SequenceConstraint::new(constraint.begin(), request.vocabulary)
        };
        let constraint = request.constraint.as_ref().map(begin);
        let mut sequence = Self {
            request,
            arrival,
            tokens,
            context,
            cached_tokens: 0,
            cached: 0,
            full_logits_until: 0,
            full_logits_tokens: 1,
            begins_again: false,
            lookahead,
            constraint,
            task,
            sampling: SamplerState::default(),
            entered: None,
            first_token: None,
            last_token: None,
            wait: None,
        };
        let left = sequence.tokens_left();
        if let Some(constraint) = &mut sequence.constraint {
            constraint.set_tokens_left(left);
        }
        sequence
    }

    pub(crate) fn queue(&self) -> &Queue {
        &self.request.queue
    }

    pub(crate) fn priority(&self) -> i32 {
        self.request.priority
    }

    /// Its priority beside those of other tenants: none puts itself before them.
    pub(crate) fn standing(&self) -> i32 {
        let most = if self.request.tenant.is_some() { 0 } else { i32::MAX };
        self.request.priority.min(most)
    }

    pub(crate) fn tenant(&self) -> Option<u64> {
        self.request.tenant
    }

    /// What separates its prefixes in the cache from those of others.
    pub(crate) fn salt(&self) -> Option<&CacheSalt> {
        self.request.salt.as_ref()
    }

    pub(crate) fn arrival_time(&self) -> Instant {
        self.request.arrival_time
    }

    pub(crate) fn deadline(&self) -> Option<Instant> {
        self.request.deadline
    }

    /// Whether its consumer wants another event.
    pub(crate) fn demands(&self) -> bool {
        self.queue().demand() == Demand::More
    }

    /// Whether it or one of its siblings is to end before its time.
    pub(crate) fn is_interrupted(&self, now: Instant) -> bool {
        let requests = std::iter::once(&self.request).chain(&self.request.samples);
        requests.into_iter().any(|request| request.interruption(now).is_some())
    }

    /// Why it is to end before its time, if so.
    pub(crate) fn interruption(&self, now: Instant) -> Option<FinishReason> {
        self.request.interruption(now)
    }

    /// Ends it with an error that it may share with others.
    pub(crate) fn fail(&mut self, error: &Arc<Error>) {
        self.request.trace.failed(error);
        self.push_last(Err(Error::Step(Arc::clone(error))));
    }

    /// Ends it and its samples with an error.
    pub(crate) fn fail_all(&mut self, error: &Arc<Error>) {
        self.take_samples().iter_mut().for_each(|sample| sample.fail(error));
        self.fail(error);
    }

    /// Emits its last event. Whoever sees it finds its slots free.
    fn push_last(&mut self, event: Result<Event, Error>) {
        self.request.slot = None;
        self.queue().push(event);
    }

    /// Sequences that it may come to be.
    pub(crate) fn count(&self) -> usize {
        self.task.beam().map_or(1 + self.request.samples.len(), beam_search::Search::count)
    }

    /// Positions that are in the cache.
    pub(crate) fn cached(&self) -> usize {
        self.cached
    }

    /// Prompt and generated tokens, as far as the model sees them.
    pub(crate) fn context(&self) -> &[u32] {
        &self.context
    }

    /// Tokens that are not in the cache: the rest of the prompt, or the last token; of a search
    /// those that its rows still have in common, if they lie in one place.
    pub(crate) fn pending(&self) -> &[u32] {
        let forks_at = self.task.beam().and_then(|search| search.forks_at);
        &self.context[self.cached..forks_at.unwrap_or(self.context.len())]
    }

    /// The next `count` pending tokens have entered the cache.
    pub(crate) fn commit_rows(&mut self, count: usize) {
        self.cached += count;
    }

    /// No more than this many tokens are in the cache.
    pub(crate) fn keep_cached(&mut self, count: usize) {
        self.cached = self.cached.min(count);
    }

    /// Emits how much of the prompt is computed, if that is requested.
    pub(crate) fn report_progress(&self) {
        if !self.request.prompt_progress || self.first_token.is_some() {
            return;
        }
        let progress =
            PromptProgress { computed_tokens: self.cached, prompt_tokens: self.context.len() };
        for request in std::iter::once(&self.request).chain(&self.request.samples) {
            request.queue.push_progress(progress);
        }
    }

    /// The constraint that its next token follows, if there is one.
    pub(crate) fn constraint(&mut self) -> Option<&mut SequenceConstraint> {
        let is_thinking = self.request.is_thinking();
        self.constraint.as_mut().filter(|_| !is_thinking)
    }

    /// Tokens that may still be generated before it ends, or its context is full.
    pub(crate) fn remaining(&self) -> usize {
        (self.request.max_tokens - self.generated())
            .min(self.request.context_length - self.context.len())
    }

    /// Tokens that may still be generated, where a full context does not end it as well.
    pub(crate) fn tokens_left(&self) -> usize {
        match self.request.context_overflow {
            Some(_) => self.request.max_tokens.saturating_sub(self.generated()),
            None => self.remaining(),
        }
    }

    /// How it ends with its prompt and what was generated before, if so.
    pub(crate) fn end_of_prompt(&self) -> Option<TextEnd> {
        let is_all = self.remaining() == 0;
        self.request.ended.clone().or_else(|| is_all.then_some((FinishReason::Length, None)))
    }

    /// Goes on from fewer tokens where the context is full; whether it is to begin again from its tokens,
    /// for that or as the last row gave none. Nothing of it is in the cache then.
    ///
    /// # Errors
    ///
    /// If what is to shorten it fails, or leaves what cannot be run.
    pub(crate) fn shorten(&mut self) -> Result<bool, Error> {
        if std::mem::take(&mut self.begins_again) {
            return Ok(true);
        }
        let Request { context_length, vocabulary, .. } = self.request;
        let Some(strategy) = &self.request.context_overflow else { return Ok(false) };
        if self.context.len() < context_length {
            return Ok(false);
        }
        self.context = strategy.shorten(&self.context, context_length, vocabulary)?;
        self.cached = 0;
        Ok(true)
    }

    /// Whether none of its tokens has been generated.
    pub(crate) fn is_prompt(&self) -> bool {
        self.generated() == 0
    }

    /// Tokens generated so far.
    pub(crate) fn generated(&self) -> usize {
        self.tokens.len() - self.request.prompt.len()
    }
}
