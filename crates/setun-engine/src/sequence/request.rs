//! Requests to a scheduler.

use std::{sync::Arc, time::Duration};

use futures::channel::oneshot;
use setun_clock::{Clock, Instant};
use setun_model::CacheSalt;
use setun_text::{
    FilteredText, Sampler, StopStrings, StreamDecoder, ToolCallDelta, ToolCallReader,
};

use super::Pool;
use crate::{
    beams::{BeamOptions, BeamText},
    constraint::SharedConstraint,
    context::SharedContextStrategy,
    error::Error,
    event::FinishReason,
    event_queue::{Demand, Queue},
    request_slots::RequestSlot,
    telemetry::Trace,
    thinking::Thinking,
};

/// What makes a request a search.
#[derive(Debug)]
pub(crate) struct SearchRequest {
    pub(crate) options: BeamOptions,
    /// Gets the texts before the last event comes.
    pub(crate) reply: oneshot::Sender<Vec<BeamText>>,
}

/// The contents of a request.
#[derive(Debug)]
pub(crate) enum TaskRequest {
    /// Tokens, and log-probabilities of the prompt's.
    Generate(Option<PromptRange>),
    /// The likeliest texts.
    Beam(SearchRequest),
    /// A vector of the prompt's hidden states.
    Embed(Pool),
    /// Log-probabilities of the prompt's tokens, or its place in the cache alone.
    Score(Option<PromptRange>),
}

impl Default for TaskRequest {
    fn default() -> Self {
        Self::Generate(None)
    }
}

impl TaskRequest {
    /// Generations that it counts as: the beams of a search.
    pub(crate) fn beams(&self) -> usize {
        if let Self::Beam(search) = self { search.options.num_beams } else { 1 }
    }

    /// The tokens whose log-probabilities are requested.
    pub(crate) fn prompt_range_mut(&mut self) -> Option<&mut PromptRange> {
        match self {
            Self::Generate(range) | Self::Score(range) => range.as_mut(),
            Self::Beam(_) | Self::Embed(_) => None,
        }
    }
}

/// The tokens of a prompt from one on, and a decoder of the text before it.
#[derive(Debug)]
pub(crate) struct PromptRange {
    pub(crate) from: usize,
    pub(crate) decoder: Option<StreamDecoder>,
}

/// Why a text has ended, and the stop string that ended it, if one did.
pub(crate) type TextEnd = (FinishReason, Option<String>);

/// The parts that a token adds to an answer.
#[derive(Debug, Default)]
pub(super) struct Decoded {
    pub(super) text: String,
    pub(super) reasoning: Option<String>,
    pub(super) calls: Vec<ToolCallDelta>,
}

/// A request that has passed all checks.
#[derive(Debug)]
pub(crate) struct Request {
    pub(crate) prompt: Vec<u32>,
    /// Tokens that were generated before it.
    pub(crate) generated: Vec<u32>,
    /// How the text ended with these, if so.
    pub(crate) ended: Option<TextEnd>,
    /// What the model is to see of the prompt and these, where that is not all.
    pub(crate) shortened: Option<Vec<u32>>,
    pub(crate) max_tokens: usize,
    /// What separates its prefixes in the cache from those of others.
    pub(crate) salt: Option<CacheSalt>,
    /// Positions of the context, and what is done once they are full.
    pub(crate) context_length: usize,
    pub(crate) context_overflow: Option<SharedContextStrategy>,
    pub(crate) sampler: Sampler,
    pub(crate) seed: u64,
    /// Which of the samples with this seed.
    pub(crate) sample: u64,
    /// Others of the same prompt, which begin where it ends.
    pub(crate) samples: Vec<Request>,
    pub(crate) decoder: Option<StreamDecoder>,
    /// Takes the reasoning out of the text.
    pub(crate) thinking: Option<Thinking>,
    /// Takes the calls of tools out of the text.
    pub(crate) calls: Option<ToolCallReader>,
    pub(crate) stops: StopStrings,
    pub(crate) filter: Option<FilteredText>,
    /// The same filter over the reasoning.
    pub(crate) reasoning_filter: Option<FilteredText>,
    pub(crate) eos_tokens: Vec<u32>,
    pub(crate) logprobs: bool,
    pub(crate) top_logprobs: usize,
    /// Whether each step of the prompt has an event.
    pub(crate) prompt_progress: bool,
    pub(crate) task: TaskRequest,
    /// The constraint on its text.
    pub(crate) constraint: Option<SharedConstraint>,
    /// Tokens of the vocabulary.
    pub(crate) vocabulary: usize,
    /// Most tokens to guess from the text so far.
    pub(crate) lookahead: usize,
    pub(crate) queue: Arc<Queue>,
    pub(crate) clock: Clock,
    pub(crate) arrival_time: Instant,
    /// Higher ones go first.
    pub(crate) priority: i32,
    /// Who shares the places with others.
    pub(crate) tenant: Option<u64>,
    /// It ends then, with what it has.
    pub(crate) deadline: Option<Instant>,
    /// It fails if it waits longer than that for its place in the batch.
    pub(crate) queue_timeout: Option<Duration>,
    /// Reports its events.
    pub(crate) trace: Trace,
    /// Its slots, until its last event.
    pub(crate) slot: Option<RequestSlot>,
}

impl Request {
    /// Whether events have log-probabilities.
    pub(super) fn wants_logprobs(&self) -> bool {
        self.logprobs || self.top_logprobs > 0
    }

    pub(super) fn interruption(&self, now: Instant) -> Option<FinishReason> {
        match self.queue.demand() {
            Demand::Cancel | Demand::Gone => Some(FinishReason::Aborted),
            _ if self.deadline.is_some_and(|deadline| deadline <= now) => {
                Some(FinishReason::Timeout)
            }
            _ => None,
        }
    }

    /// Whether the next token belongs to the reasoning.
    pub(super) fn is_thinking(&self) -> bool {
        self.thinking.as_ref().is_some_and(Thinking::is_open)
    }

    /// Takes the tokens that were generated before. Their text is known already, and the constraint
    /// is that of what follows the answer's.
    ///
    /// # Errors
    ///
    /// If one cannot be decoded.
    pub(crate) fn replay(&mut self) -> Result<(), Error> {
        let mut answer = vec![];
        for index in 0..self.generated.len() {
            let token = self.generated[index];
            let opens = self.thinking.as_ref().and_then(Thinking::opening) == Some(token);
            if !opens && !self.is_thinking() {
                answer.push(token);
            }
            let ends = self.eos_tokens.contains(&token);
            let is_last = ends || index + 1 == self.max_tokens;
            let (_, stopped) = self.decode(token, ends, is_last)?;
            let has_calls = self.calls.as_ref().is_some_and(ToolCallReader::has_calls);
            let reason = match ends {
                true if has_calls => FinishReason::ToolCalls,
                true => FinishReason::Stop,
                false => FinishReason::Length,
            };
            self.ended = stopped.or_else(|| is_last.then_some((reason, None)));
            if self.ended.is_some() {
                break;
            }
        }
        self.constraint = self.constraint.take().map(|form| form.after(&answer));
        Ok(())
    }

    /// The text that a token completes, held back while it may belong to a stop string or a filter
    /// holds it; and how the text ends there, if it does.
    ///
    /// # Errors
    ///
    /// If it cannot be decoded.
    pub(super) fn decode(
        &mut self,
        token: u32,
        ends: bool,
        last: bool,
    ) -> Result<(Decoded, Option<TextEnd>), Error> {
        let Some(decoder) = &mut self.decoder else { return Ok((Decoded::default(), None)) };
        let mut delta = if ends { String::new() } else { decoder.push(token)? };
        if last {
            delta.push_str(&decoder.finish()?);
        }
        let (mut reasoning, mut calls) = (None, vec![]);
        if let Some(thinking) = &mut self.thinking {
            let step = thinking.push(token, delta, ends, last);
            (delta, reasoning) = (step.text, step.reasoning);
        }
        let is_thinking = self.is_thinking();
        if let Some(reader) = self.calls.as_mut().filter(|_| !is_thinking) {
            let step = reader.push(token, &delta);
            (delta, calls) = (step.text, step.calls);
            if last {
                delta.push_str(&reader.finish());
            }
        }
        let step = self.stops.push(&delta);
        let mut text = step.text;
        if last && step.stopped.is_none() {
            text.push_str(&self.stops.flush());
        }
        let stopped = step.stopped.map(|stop| (FinishReason::Stop, Some(stop)));
        let is_last = last || stopped.is_some();
        let mut filtered = false;
        if let (Some(filter), Some(text)) = (&mut self.reasoning_filter, &mut reasoning) {
            let step = filter.push(text, is_last || !is_thinking)?;
            (*text, filtered) = (step.text, step.stopped);
        }
        if let Some(filter) = self.filter.as_mut().filter(|_| !filtered) {
            let step = filter.push(&text, is_last)?;
            (text, filtered) = (step.text, step.stopped);
        }
        let filtered = filtered.then_some((FinishReason::ContentFilter, None));
        Ok((Decoded { text, reasoning, calls }, filtered.or(stopped)))
    }
}

/// However a request ends, nothing more will come.
impl Drop for Request {
    fn drop(&mut self) {
        self.queue.close();
    }
}
