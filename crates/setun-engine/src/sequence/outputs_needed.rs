//! Outputs that a sequence needs of its next rows.

use setun_model::{RequestedOutput, SequenceId};
use setun_ops::{argmax::ArgmaxRequest, top_logits::TopLogitsRequest};
use setun_text::{Greedy, Needs, Step};

use super::{Sequence, Task};
use crate::{speculation::DraftRequest, thinking::Thinking};

impl Sequence {
    /// What the row of the last pending token is to give.
    pub(crate) fn output_needed(&mut self, vocabulary: usize) -> RequestedOutput {
        match &self.task {
            Task::Beam(search) if search.forks_at.is_some() => return RequestedOutput::Nothing,
            Task::Beam(_) => return RequestedOutput::Logits,
            Task::Embed(_) | Task::Score(_) => return RequestedOutput::Nothing,
            Task::Generate(_) => {}
        }
        if self.generated() < self.full_logits_until || self.request.wants_logprobs() {
            return RequestedOutput::Logits;
        }
        let (is_thinking, opening) = (self.request.is_thinking(), self.opening());
        let mut constraint = self.constraint.take();
        let active = constraint.as_mut().filter(|_| !is_thinking);
        let allowed = active.map(|constraint| constraint.known_mask(opening));
        let step = Step { allowed, ..self.step() };
        let needs = self.request.sampler.needs(&step, vocabulary);
        self.constraint = constraint;
        match needs {
            // Samples that wait for the prompt take their first tokens from this row, each by noise of its own.
            Needs::TopLogits { noise: Some(_), .. } if self.has_samples() => {
                RequestedOutput::Logits
            }
            Needs::TopLogits { k, within, noise, top, sum, touched } => {
                RequestedOutput::TopLogits(TopLogitsRequest { k, within, noise, top, sum, touched })
            }
            _ => RequestedOutput::Logits,
        }
    }

    /// Whether tokens are to be guessed.
    pub(crate) fn speculates(&self) -> bool {
        self.wants_draft() && self.generated() > 0
    }

    /// Whether its tokens are to be guessed, once there is a first.
    pub(crate) fn wants_draft(&self) -> bool {
        self.request.lookahead > 0 && matches!(self.task, Task::Generate(_))
    }

    /// Up to `most` tokens that may come next, by the text so far.
    pub(crate) fn propose_from_text(&mut self, most: usize, vocabulary: usize) -> Vec<u32> {
        let most = most.min(self.max_draft_len());
        self.lookahead.guess(&self.tokens, most, vocabulary)
    }

    /// How many tokens a draft is to guess, at most this many; each takes that part of a step.
    pub(crate) fn draft_len(&mut self, most: usize, proposal: f64) -> usize {
        self.lookahead.count(most.min(self.max_draft_len()), proposal)
    }

    /// What a draft is asked that is to guess this many tokens of this sequence at `place`.
    pub(crate) fn draft_request(&self, kv_slot: SequenceId, most: usize) -> DraftRequest<'_> {
        let context = self.context.as_slice();
        let prompt_tokens = context.len().saturating_sub(self.generated());
        let step = Step { history: context, prompt_tokens, ..self.step() };
        let sampler = Some(&self.request.sampler).filter(|sampler| !sampler.has_state());
        let salt = self.salt();
        DraftRequest { sequence: kv_slot, salt, step, most, sampler }
    }

    /// One comes without a guess.
    fn max_draft_len(&self) -> usize {
        self.remaining().saturating_sub(1)
    }

    /// The pending token and those that are guessed to come after it, each with what its row is to
    /// give if those before it are right.
    pub(crate) fn draft_rows(
        &mut self,
        draft: Vec<u32>,
        vocabulary: usize,
    ) -> Vec<(u32, RequestedOutput)> {
        let known = self.tokens.len();
        let mut rows = vec![(self.context[self.cached], self.output_needed(vocabulary))];
        for token in draft {
            self.tokens.push(token);
            rows.push((token, self.output_needed(vocabulary)));
        }
        self.tokens.truncate(known);
        rows
    }

    /// Records how many tokens were guessed, and how many of them were right.
    pub(crate) fn record_draft(&mut self, draft: usize, right: usize) {
        self.lookahead.record(draft, right);
    }

    /// Whether the next token follows from the logits alone, so that a device can choose it.
    pub(crate) fn is_greedy(&self) -> bool {
        let needs_logits =
            self.generated() < self.full_logits_until || self.request.wants_logprobs();
        let is_limited = self.request.thinking.as_ref().is_some_and(Thinking::is_limited);
        let has_more = is_limited
            || self.request.lookahead > 0
            || self.constraint.is_some()
            || self.reports_prompt();
        !needs_logits
            && !has_more
            && matches!(self.task, Task::Generate(_))
            && self.request.sampler.is_argmax(&self.step())
    }

    /// How a device chooses the next token.
    pub(crate) fn choice(&self) -> RequestedOutput {
        match self.request.sampler.greedy(&self.step()) {
            Some(Greedy { repetition_penalty: penalty, touched, biases, .. }) => {
                RequestedOutput::Argmax(ArgmaxRequest { penalty, touched, biases })
            }
            None => RequestedOutput::Logits,
        }
    }
}
