//! What a generation asks of its next rows.

use setun_model::{RequestedOutput, SequenceId};
use setun_ops::{argmax::ArgmaxRequest, top_logits::TopLogitsRequest};
use setun_text::{Greedy, Needs, Step};

use super::{Followed, Sequence};
use crate::speculate::DraftRequest;

impl Sequence {
    /// What the row of the last pending token is to give.
    pub(crate) fn wants(&mut self, vocabulary: usize) -> RequestedOutput {
        if let Some(search) = &self.search {
            return if search.forks_at.is_some() {
                RequestedOutput::Nothing
            } else {
                RequestedOutput::Logits
            };
        }
        if self.request.max_tokens == 0 {
            return RequestedOutput::Nothing;
        }
        if self.generated() < self.all_until || self.request.judges() {
            return RequestedOutput::Logits;
        }
        let mut followed = self.followed.take();
        let allowed = followed.as_mut().map(Followed::known_mask);
        let step = Step { allowed, ..self.step() };
        let needs = self.request.sampler.needs(&step, vocabulary);
        self.followed = followed;
        match needs {
            Needs::TopLogits { k, within, touched } => {
                RequestedOutput::TopLogits(TopLogitsRequest { k, within, touched })
            }
            _ => RequestedOutput::Logits,
        }
    }

    /// Whether tokens are to be guessed.
    pub(crate) fn looks_ahead(&self) -> bool {
        self.wants_guesses() && self.generated() > 0
    }

    /// Whether its tokens are to be guessed, once there is a first.
    pub(crate) fn wants_guesses(&self) -> bool {
        self.request.lookahead > 0 && self.search.is_none()
    }

    /// Up to `most` tokens that may come next, by the text so far.
    pub(crate) fn guess(&mut self, most: usize, vocabulary: usize) -> Vec<u32> {
        let most = most.min(self.max_guesses());
        self.lookahead.guess(&self.tokens, most, vocabulary)
    }

    /// How many tokens a draft is to guess, at most so many; each takes that part of a step.
    pub(crate) fn guesses(&mut self, most: usize, proposal: f64) -> usize {
        self.lookahead.count(most.min(self.max_guesses()), proposal)
    }

    /// What a draft is asked that is to guess so many tokens of this sequence at `place`.
    pub(crate) fn draft_request(&self, place: SequenceId, most: usize) -> DraftRequest<'_> {
        let context = self.context.as_slice();
        let prompt_tokens = context.len().saturating_sub(self.generated());
        let step = Step { history: context, prompt_tokens, ..self.step() };
        let sampler = Some(&self.request.sampler).filter(|sampler| !sampler.has_state());
        DraftRequest { sequence: place, step, most, probabilities: false, sampler }
    }

    /// One comes without a guess.
    fn max_guesses(&self) -> usize {
        self.remaining().saturating_sub(1)
    }

    /// The pending token and those that are guessed to come after it, each with what its row is to
    /// give if those before it are right.
    pub(crate) fn look_ahead(
        &mut self,
        guessed: Vec<u32>,
        vocabulary: usize,
    ) -> Vec<(u32, RequestedOutput)> {
        let known = self.tokens.len();
        let mut rows = vec![(self.context[self.cached], self.wants(vocabulary))];
        for token in guessed {
            self.tokens.push(token);
            rows.push((token, self.wants(vocabulary)));
        }
        self.tokens.truncate(known);
        rows
    }

    /// Of so many guessed tokens so many were right.
    pub(crate) fn note_guesses(&mut self, guessed: usize, right: usize) {
        self.lookahead.note(guessed, right);
    }

    /// Whether the next token follows from the logits alone, so that a device can choose it.
    pub(crate) fn is_greedy(&self) -> bool {
        let needs_logits = self.generated() < self.all_until || self.request.judges();
        let has_more = self.request.lookahead > 0 || self.followed.is_some() || self.tells();
        !needs_logits
            && !has_more
            && self.search.is_none()
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
