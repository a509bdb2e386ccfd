//! Tokens of a sequence: their choice, their text and their events.

use std::{sync::Arc, time::Duration};

use setun_clock::Clock;
use setun_model::Row;
use setun_ops::{argmax::NONE, top_logits::Ranked};
use setun_text::{Choice, Draw, Step, ToolCallReader};

use super::{Decoded, Prepared, Request, Sequence, Task, Wait, prompt_logprobs::token_logprobs};
use crate::{
    constraint::ConstraintState,
    engine_info::EngineInfo,
    error::Error,
    event::{Done, Event, FinishReason, TextDelta, Timings, Usage},
    thinking::Thinking,
};

/// Where the best logits do not decide the next token, it takes all logits. So do the tokens after it, twice as many each time that this
/// happens, up to this many, and half as many each time that it does not: what found the best logits was for nothing.
const MAX_FULL_LOGITS_TOKENS: usize = 16;

/// Most tokens that are pending together because a constraint leaves no choice about them: other sequences wait for their masks and rows.
const MAX_FORCED_TOKENS: usize = 16;

/// Whether a generation goes on.
pub(crate) enum Next {
    Continue,
    Finished(FinishReason, Option<String>),
}

impl Sequence {
    /// Chooses the next token and emits its event. None where the best logits do not decide it, and
    /// all are needed.
    ///
    /// # Errors
    ///
    /// If the logits are not finite, or a token cannot be decoded.
    pub(crate) fn apply_logits(&mut self, row: Row<'_>) -> Result<Option<Next>, Error> {
        let Some(token) = self.choose(row)? else {
            self.full_logits_until = self.generated() + self.full_logits_tokens;
            self.full_logits_tokens = (2 * self.full_logits_tokens).min(MAX_FULL_LOGITS_TOKENS);
            return Ok(None);
        };
        if let Row::Ranked(_) = row {
            self.full_logits_tokens = (self.full_logits_tokens / 2).max(1);
        }
        let delta = match row {
            Row::Logits(logits) if self.request.wants_logprobs() => {
                let Request { decoder, top_logprobs, .. } = &self.request;
                token_logprobs(logits, token, *top_logprobs, decoder.as_ref())
            }
            _ => TextDelta { token, ..TextDelta::default() },
        };
        self.take(delta).map(Some)
    }

    /// Takes the token that a device chose, and emits its event. None where it chose none, as a logit is
    /// not finite: it begins again, for all logits, which tell why.
    ///
    /// # Errors
    ///
    /// If it cannot be decoded.
    pub(crate) fn apply_argmax(&mut self, token: u32) -> Result<Option<Next>, Error> {
        if token == NONE {
            (self.full_logits_until, self.begins_again) = (self.generated() + 1, true);
            return Ok(None);
        }
        self.take(TextDelta { token, ..TextDelta::default() }).map(Some)
    }

    /// Takes the next token and emits its event, where the constraint allows one alone: its choice
    /// needs no logits. None where there is a choice, where the logits are reported, or the token
    /// may be the last.
    pub(crate) fn take_forced(
        &mut self,
        prepare: impl FnOnce(Box<dyn ConstraintState>, &Clock) -> Prepared,
    ) -> Option<Result<Next, Error>> {
        let is_silent = !self.request.wants_logprobs() && matches!(self.task, Task::Generate(_));
        // The module of a browser has hardly any room left.
        let has_room = self.remaining() >= 2 && self.pending().len() < MAX_FORCED_TOKENS;
        if cfg!(target_family = "wasm") || !is_silent || !has_room {
            return None;
        }
        if let Some(token) = self.request.thinking.as_ref().and_then(Thinking::forced) {
            return Some(self.take(TextDelta { token, ..TextDelta::default() }));
        }
        if self.opening().is_some() {
            return None;
        }
        let is_thinking = self.request.is_thinking();
        let constraint = self.constraint.as_mut().filter(|_| !is_thinking)?;
        let token = constraint.only_token(|state| prepare(state, &self.request.clock))?;
        let is_known = (token as usize) < self.request.vocabulary;
        if !is_known || !self.request.sampler.takes_only(token, &self.step()) {
            return None;
        }
        let left = self.tokens_left().saturating_sub(1);
        let constraint = self.constraint.as_mut()?;
        let accepted = constraint.accept(token);
        constraint.set_tokens_left(left);
        Some(accepted.and_then(|()| self.take(TextDelta { token, ..TextDelta::default() })))
    }

    fn take(&mut self, delta: TextDelta) -> Result<Next, Error> {
        let token = delta.token;
        let now = self.request.clock.now();
        self.wait = Some(match self.last_token.replace(now) {
            Some(last) => Wait::Next(now - last),
            None => Wait::First {
                request: now - self.request.arrival_time,
                admission: self.entered.map_or(Duration::ZERO, |entered| now - entered),
            },
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
        let is_last = matches!(next, Next::Finished(..));
        let (step, stopped) = self.request.decode(token, ends, is_last)?;
        let Decoded { text, reasoning, calls: tool_calls } = step;
        self.queue().push(Ok(Event::Text(TextDelta { text, reasoning, tool_calls, ..delta })));
        let has_calls = self.request.calls.as_ref().is_some_and(ToolCallReader::has_calls);
        Ok(match stopped.map_or(next, |(reason, stop)| Next::Finished(reason, stop)) {
            Next::Finished(FinishReason::Stop, None) if has_calls => {
                Next::Finished(FinishReason::ToolCalls, None)
            }
            next => next,
        })
    }

    fn has_no_room(&self) -> bool {
        let is_full = self.context.len() >= self.request.context_length;
        self.generated() >= self.request.max_tokens
            || (is_full && self.request.context_overflow.is_none())
    }

    /// The next token; none where the best logits do not decide it.
    fn choose(&mut self, row: Row<'_>) -> Result<Option<u32>, Error> {
        let (is_thinking, opening) = (self.request.is_thinking(), self.opening());
        if let Some(token) = self.request.thinking.as_ref().and_then(Thinking::forced) {
            return Ok(Some(token));
        }
        let mut constraint = self.constraint.take();
        let active = constraint.as_mut().filter(|_| !is_thinking);
        let allowed = active.map(|constraint| constraint.mask(opening)).transpose()?;
        let (sampler, step) = (&self.request.sampler, Step { allowed, ..self.step() });
        let mut state = self.sampling;
        let choice = match row {
            Row::Logits(logits) => Some(sampler.sample(logits, &step, &mut state)?),
            Row::Ranked(ranked) => {
                let pair = |ranked: &Ranked| (ranked.token, ranked.logit);
                let ranked: Vec<_> = ranked.iter().map(pair).collect();
                sampler.sample_ranked(&ranked, &step, &mut state)?
            }
            Row::HiddenState(_) => None, // no token is chosen from one
        };
        self.sampling = state;
        let mut token = choice.map(|Choice { token, .. }| token);
        let ends = token.is_some_and(|token| self.request.eos_tokens.contains(&token));
        match (&mut constraint, token, &mut self.request.thinking) {
            (Some(_), Some(_), Some(thinking)) if is_thinking => {
                token = if ends { thinking.close() } else { None }.or(token);
            }
            (Some(constraint), Some(token), _) if opening != Some(token) => {
                constraint.accept(token)?;
            }
            _ => {}
        }
        if let Some(constraint) = constraint.as_mut().filter(|_| token.is_some()) {
            constraint.set_tokens_left(self.tokens_left().saturating_sub(1));
        }
        self.constraint = constraint;
        Ok(token)
    }

    /// The token that the constraint does not know: reasoning may begin with it.
    pub(super) fn opening(&self) -> Option<u32> {
        self.request.thinking.as_ref().and_then(Thinking::opening)
    }

    /// Where the next token is chosen.
    pub(super) fn step(&self) -> Step<'_> {
        let index = self.generated() as u64;
        let Request { seed, sample, .. } = self.request;
        let draw = Draw { seed, sequence: sample, index };
        Step::new(&self.tokens, self.request.prompt.len(), draw)
    }

    /// Emits the last event.
    pub(crate) fn finish(&mut self, reason: FinishReason, stop: Option<String>, info: &EngineInfo) {
        let (reason, stop, generated) = match self.finish_search(reason) {
            Ok(None) => (reason, stop, self.generated()),
            Ok(Some(found)) => (found.reason, found.stop, found.tokens),
            Err(error) => return self.fail(&Arc::new(error)),
        };
        self.request.trace.ended(reason, generated);
        let unfinished = self.constraint.as_mut().is_some_and(|constraint| !constraint.may_end());
        let first = self.first_token;
        let first_token_seconds =
            first.map_or(0.0, |first| (first - self.request.arrival_time).as_secs_f64());
        let times = first.zip(self.last_token);
        let after_first = times.map_or(0.0, |(first, last)| (last - first).as_secs_f64());
        let timed = generated.saturating_sub(self.request.generated.len());
        let tokens_per_second =
            if timed > 1 && after_first > 0.0 { to_f64(timed - 1) / after_first } else { 0.0 };
        self.push_last(Ok(Event::Done(Done {
            finish_reason: reason,
            unfinished,
            stop,
            usage: Usage {
                prompt_tokens: self.request.prompt.len(),
                completion_tokens: generated,
                cached_tokens: self.cached_tokens,
                reasoning_tokens: self.request.thinking.as_ref().map_or(0, Thinking::tokens),
            },
            timings: Timings {
                load_seconds: info.load_seconds,
                first_token_seconds,
                tokens_per_second,
            },
            seed: self.request.seed,
            backend: info.backend,
            level: info.level.clone(),
            model: info.model.clone(),
        })));
    }
}

#[expect(clippy::cast_precision_loss, reason = "a count of tokens")]
fn to_f64(count: usize) -> f64 {
    count as f64
}
