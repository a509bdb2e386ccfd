//! One generation, as its scheduler sees it.

mod beam_search;
mod constraint_state;
mod outputs_needed;
mod pool;
mod prompt_logprobs;
mod request;
mod residency;
mod task;

use std::sync::Arc;

pub(crate) use constraint_state::{Away, Prepared, SequenceConstraint};
pub(crate) use pool::Pool;
pub(crate) use prompt_logprobs::MAX_PROMPT_LOGPROB_ROWS;
use prompt_logprobs::token_logprobs;
pub(crate) use request::{PromptRange, Request, SearchRequest, TaskRequest};
pub(crate) use residency::Wait;
use setun_model::Row;
use setun_ops::{argmax::NONE, top_logits::Ranked};
use setun_text::{Choice, Draw, SamplerState, Step};
use task::Task;
use web_time::Instant;

use crate::{
    constraint::SharedConstraint,
    engine_info::EngineInfo,
    error::Error,
    event::{Done, Event, FinishReason, TextDelta, Timings, Usage},
    event_queue::{Demand, Queue},
    speculation::Lookahead,
};

/// Where the best logits do not tell the next token, this many tokens take all logits: where that
/// happens once it may happen often, and a row that is run twice costs more than a whole head.
const FULL_LOGITS_TOKENS: usize = 16;

/// A generation: its tokens, and how many of them are in the cache while it has a place there.
#[derive(Debug)]
pub(crate) struct Sequence {
    request: Request,
    /// The earlier of two with one priority goes first.
    pub(crate) arrival: u64,
    tokens: Vec<u32>,         // prompt and generated
    context: Vec<u32>,        // what the model sees of them
    cached: usize,            // tokens whose keys and values are in the cache
    full_logits_until: usize, // this many generated tokens take all logits
    lookahead: Lookahead,
    constraint: Option<SequenceConstraint>,
    task: Task,
    sampling: SamplerState,
    entered: bool, // has had a place in the cache
    first_token: Option<Instant>,
    last_token: Option<Instant>,
    wait: Option<Wait>, // for the last token, until it is taken note of
}

/// Whether a generation goes on.
pub(crate) enum Next {
    Continue,
    /// The last row has to be run again: the cache is to forget it.
    Rerun,
    Finished(FinishReason, Option<String>),
}

impl Sequence {
    pub(crate) fn new(mut request: Request, arrival: u64) -> Self {
        let task = Task::new(&mut request);
        let tokens = request.prompt.clone();
        let context = request.seen.clone().unwrap_or_else(|| tokens.clone());
        let lookahead = Lookahead::new(request.lookahead);
        let follow =
            |form: &SharedConstraint| SequenceConstraint::new(form.begin(), request.vocabulary);
        let constraint = request.form.as_ref().map(follow);
        Self {
            request,
            arrival,
            tokens,
            context,
            cached: 0,
            full_logits_until: 0,
            lookahead,
            constraint,
            task,
            sampling: SamplerState::default(),
            entered: false,
            first_token: None,
            last_token: None,
            wait: None,
        }
    }

    pub(crate) fn queue(&self) -> &Queue {
        &self.request.queue
    }

    pub(crate) fn priority(&self) -> i32 {
        self.request.priority
    }

    pub(crate) fn asked(&self) -> Instant {
        self.request.asked
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
    pub(crate) fn fail(&self, error: &Arc<Error>) {
        self.request.trace.failed(error);
        self.queue().push(Err(Error::Step(Arc::clone(error))));
    }

    /// The generations that begin where this one's prompt ends. They have its place in line, and
    /// as much of the prompt in the cache.
    pub(crate) fn take_samples(&mut self) -> Vec<Self> {
        let Self { arrival, cached, entered, .. } = *self;
        let beam_row = |request| Self { cached, entered, ..Self::new(request, arrival) };
        std::mem::take(&mut self.request.samples).into_iter().map(beam_row).collect()
    }

    /// Others are to begin where this one's prompt ends.
    pub(crate) fn set_samples(&mut self, samples: Vec<Self>) {
        self.request.samples = samples.into_iter().map(|sample| sample.request).collect();
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

    /// The form that it follows, if there is one.
    pub(crate) fn constraint(&mut self) -> Option<&mut SequenceConstraint> {
        self.constraint.as_mut()
    }

    /// Tokens that may still be generated before it ends, or its context is full.
    pub(crate) fn remaining(&self) -> usize {
        (self.request.max_tokens - self.generated())
            .min(self.request.positions - self.context.len())
    }

    /// Goes on from fewer tokens where the context is full; whether that is so. Nothing of it is
    /// in the cache then.
    ///
    /// # Errors
    ///
    /// If what is to shorten it fails, or leaves what cannot be run.
    pub(crate) fn shorten(&mut self) -> Result<bool, Error> {
        let Request { positions, vocabulary, .. } = self.request;
        let Some(strategy) = &self.request.context else { return Ok(false) };
        if self.context.len() < positions {
            return Ok(false);
        }
        self.context = strategy.shorten(&self.context, positions, vocabulary)?;
        self.cached = 0;
        Ok(true)
    }

    /// Chooses the next token and emits its event.
    ///
    /// # Errors
    ///
    /// If the logits are not finite, or a token cannot be decoded.
    pub(crate) fn apply_logits(&mut self, row: Row<'_>) -> Result<Next, Error> {
        let Some(token) = self.choose(row)? else { return Ok(self.rerun()) };
        let delta = match row {
            Row::Logits(logits) if self.request.wants_logprobs() => {
                token_logprobs(logits, token, self.request.top_logprobs)
            }
            _ => TextDelta { token, ..TextDelta::default() },
        };
        self.take(delta)
    }

    /// Takes the token that a device chose, and emits its event.
    ///
    /// # Errors
    ///
    /// If it cannot be decoded.
    pub(crate) fn apply_argmax(&mut self, token: u32) -> Result<Next, Error> {
        if token == NONE {
            return Ok(self.rerun());
        }
        self.take(TextDelta { token, ..TextDelta::default() })
    }

    /// Runs the last row again, for all logits.
    fn rerun(&mut self) -> Next {
        self.cached -= 1;
        self.full_logits_until = self.generated() + FULL_LOGITS_TOKENS;
        Next::Rerun
    }

    fn take(&mut self, delta: TextDelta) -> Result<Next, Error> {
        let token = delta.token;
        let now = Instant::now();
        self.wait = Some(match self.last_token.replace(now) {
            Some(last) => Wait::Next(now - last),
            None => Wait::First(now - self.request.asked),
        });
        if self.first_token.is_none() {
            self.first_token = Some(now);
            self.request.trace.first_token();
        }
        self.tokens.push(token);
        self.context.push(token);

        let ends = self.request.eos_tokens.contains(&token);
        let next = if ends {
            Next::Finished(FinishReason::Stop, None)
        } else if self.has_no_room() {
            Next::Finished(FinishReason::Length, None)
        } else {
            Next::Continue
        };
        let (text, stopped) = self.decode(token, ends, matches!(next, Next::Finished(..)))?;
        self.queue().push(Ok(Event::Text(TextDelta { text, ..delta })));
        Ok(stopped.unwrap_or(next))
    }

    fn has_no_room(&self) -> bool {
        let is_full = self.context.len() >= self.request.positions;
        self.generated() >= self.request.max_tokens || (is_full && self.request.context.is_none())
    }

    /// The next token; none where the best logits do not tell it.
    fn choose(&mut self, row: Row<'_>) -> Result<Option<u32>, Error> {
        let mut constraint = self.constraint.take();
        let allowed = constraint.as_mut().map(SequenceConstraint::mask).transpose()?;
        let (sampler, step) = (&self.request.sampler, Step { allowed, ..self.step() });
        let mut state = self.sampling;
        let choice = match row {
            Row::Logits(logits) => Some(sampler.sample(logits, &step, &mut state)?),
            Row::Ranked(ranked) => {
                let pair = |ranked: &Ranked| (ranked.token, ranked.logit);
                let ranked: Vec<_> = ranked.iter().map(pair).collect();
                sampler.sample_ranked(&ranked, &step, &mut state)?
            }
            Row::HiddenState(_) => None, // nobody chooses from one
        };
        self.sampling = state;
        let token = choice.map(|Choice { token, .. }| token);
        if let (Some(constraint), Some(token)) = (&mut constraint, token) {
            constraint.accept(token)?;
        }
        self.constraint = constraint;
        Ok(token)
    }

    /// Where the next token is chosen.
    fn step(&self) -> Step<'_> {
        let index = self.generated() as u64;
        let Request { seed, sample, .. } = self.request;
        let draw = Draw { seed, sequence: sample, index };
        Step::new(&self.tokens, self.request.prompt.len(), draw)
    }

    /// The text that a token completes, held back while it may belong to a stop string or a filter
    /// holds it; and how the text ends there, if it does.
    fn decode(
        &mut self,
        token: u32,
        ends: bool,
        last: bool,
    ) -> Result<(String, Option<Next>), Error> {
        let request = &mut self.request;
        let Some(decoder) = &mut request.decoder else { return Ok((String::new(), None)) };
        let mut delta = if ends { String::new() } else { decoder.push(token)? };
        if last {
            delta.push_str(&decoder.finish()?);
        }
        let step = request.stops.push(&delta);
        let mut text = step.text;
        if last && step.stopped.is_none() {
            text.push_str(&request.stops.flush());
        }
        let stop = |stop| Next::Finished(FinishReason::Stop, Some(stop));
        let stopped = step.stopped.map(stop);
        let Some(filter) = &mut request.filter else { return Ok((text, stopped)) };
        let step = filter.push(&text, last || stopped.is_some())?;
        let filtered = step.stopped.then_some(Next::Finished(FinishReason::Filtered, None));
        Ok((step.text, filtered.or(stopped)))
    }

    /// Emits the last event.
    pub(crate) fn finish(
        &mut self,
        reason: FinishReason,
        stop: Option<String>,
        report: &EngineInfo,
    ) {
        let (reason, stop, generated) = match self.finish_search(reason) {
            Ok(None) => (reason, stop, self.generated()),
            Ok(Some(found)) => (found.reason, found.stop, found.tokens),
            Err(error) => return self.fail(&Arc::new(error)),
        };
        self.request.trace.ended(reason, generated);
        let first = self.first_token;
        let first_token_seconds =
            first.map_or(0.0, |first| (first - self.request.asked).as_secs_f64());
        let times = first.zip(self.last_token);
        let after_first = times.map_or(0.0, |(first, last)| (last - first).as_secs_f64());
        let tokens_per_second = if generated > 1 && after_first > 0.0 {
            to_f64(generated - 1) / after_first
        } else {
            0.0
        };
        self.queue().push(Ok(Event::Done(Done {
            finish_reason: reason,
            stop,
            usage: Usage { prompt_tokens: self.request.prompt.len(), generated_tokens: generated },
            timings: Timings {
                load_seconds: report.load_seconds,
                first_token_seconds,
                tokens_per_second,
            },
            seed: self.request.seed,
            backend: report.backend,
            level: report.level.clone(),
            model: report.model.clone(),
        })));
    }

    /// Tokens generated so far.
    pub(crate) fn generated(&self) -> usize {
        self.tokens.len() - self.request.prompt.len()
    }
}

#[expect(clippy::cast_precision_loss, reason = "a count of tokens")]
fn to_f64(count: usize) -> f64 {
    count as f64
}
