//! What a generation asks of its next rows.

use setun_model::Wants;
use setun_ops::{best::BestRequest, choose::ChooseRequest};
use setun_text::{Greedy, Needs, Step};

use super::{Followed, Sequence};

impl Sequence {
    /// What the row of the last pending token is to give.
    pub(crate) fn wants(&mut self, vocabulary: usize) -> Wants {
        if let Some(search) = &self.search {
            return if search.forks_at.is_some() { Wants::Nothing } else { Wants::Logits };
        }
        if self.request.max_tokens == 0 {
            return Wants::Nothing;
        }
        if self.generated() < self.all_until || self.request.judges() {
            return Wants::Logits;
        }
        let mut followed = self.followed.take();
        let allowed = followed.as_mut().map(Followed::known_mask);
        let step = Step { allowed, ..self.step() };
        let needs = self.request.sampler.needs(&step, vocabulary);
        self.followed = followed;
        match needs {
            Needs::Best { k, within, touched } => Wants::Best(BestRequest { k, within, touched }),
            _ => Wants::Logits,
        }
    }

    /// Whether tokens are to be guessed.
    pub(crate) fn looks_ahead(&self) -> bool {
        self.request.lookahead > 0 && self.generated() > 0 && self.search.is_none()
    }

    /// The pending token and up to `most` that are guessed to come after it, each with what its
    /// row is to give if those before it are right.
    pub(crate) fn look_ahead(&mut self, most: usize, vocabulary: usize) -> Vec<(u32, Wants)> {
        let most = most.min(self.remaining() - 1); // one comes without a guess
        let guessed = self.lookahead.guess(&self.tokens, most, vocabulary);
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
            && self.request.sampler.follows(&self.step())
    }

    /// How a device chooses the next token.
    pub(crate) fn choice(&self) -> Wants {
        match self.request.sampler.greedy(&self.step()) {
            Some(Greedy { repetition_penalty: penalty, touched, biases, .. }) => {
                Wants::Choose(ChooseRequest { penalty, touched, biases })
            }
            None => Wants::Logits,
        }
    }
}
