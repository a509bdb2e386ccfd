//! The beams of a group, and the texts that it has found.

use super::{Beam, BeamOptions, EarlyStopping, candidates::Candidate};
use crate::event::FinishReason;

/// A hypothesis that goes on.
#[derive(Clone, Debug)]
pub(super) struct Hypothesis {
    /// Prompt and generated tokens.
    pub(super) tokens: Vec<u32>,
    /// The sum of the log-probabilities of those that were generated.
    pub(super) sum: f64,
    /// The row of the step whose logits follow its last token.
    pub(super) row: usize,
}

/// A search of its own, but for what earlier groups take.
#[derive(Clone, Debug)]
pub(super) struct Group {
    /// The best first; none once the search has ended.
    pub(super) running: Vec<Hypothesis>,
    /// The best first, of equal ones the one that was found first.
    pub(super) found: Vec<Beam>,
    /// Most beams, and most texts.
    size: usize,
}

/// What a group is held to.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rules {
    pub(super) prompt_tokens: usize,
    pub(super) max_tokens: usize,
    pub(super) length_penalty: f64,
    pub(super) early_stopping: EarlyStopping,
}

impl Rules {
    pub(super) fn new(options: &BeamOptions, prompt_tokens: usize, max_tokens: usize) -> Self {
        let BeamOptions { length_penalty, early_stopping, .. } = *options;
        Self { prompt_tokens, max_tokens, length_penalty, early_stopping }
    }

    /// The final score of this many generated tokens.
    fn score(&self, sum: f64, length: usize) -> f64 {
        #[expect(clippy::cast_precision_loss, reason = "a count of tokens")]
        let length = length as f64;
        sum / libm::pow(length, self.length_penalty)
    }
}

impl Group {
    /// One hypothesis, the prompt.
    pub(super) fn new(prompt: &[u32], size: usize) -> Self {
        let running = vec![Hypothesis { tokens: prompt.to_vec(), sum: 0.0, row: 0 }];
        Self { running, found: vec![], size }
    }

    /// Takes a step: candidates, the best first, and why those end that do. The tokens that its
    /// beams have taken, at the most tokens, too.
    pub(super) fn advance(
        &mut self,
        candidates: &[(Candidate, Option<FinishReason>)],
        rules: &Rules,
    ) -> Vec<u32> {
        let before = std::mem::take(&mut self.running);
        let mut taken = vec![];
        for (rank, &(Candidate { beam, token, sum }, end)) in candidates.iter().enumerate() {
            let parent = &before[beam];
            let tokens = || [&parent.tokens[..], &[token]].concat();
            if end != Some(FinishReason::Stop) && taken.len() < self.size {
                taken.push(token);
            }
            match end {
                // One that ends is kept as long as it would have been a beam.
                Some(reason) if rank < self.size => {
                    self.find(&Hypothesis { tokens: tokens(), sum, row: 0 }, reason, rules);
                }
                None if self.running.len() < self.size => {
                    self.running.push(Hypothesis { tokens: tokens(), sum, row: parent.row });
                }
                _ => {}
            }
        }
        if self.is_settled(rules) {
            self.running.clear();
        }
        taken
    }

    /// Ends the search where it is: its beams are texts, too.
    pub(super) fn end(&mut self, reason: FinishReason, rules: &Rules) {
        for hypothesis in std::mem::take(&mut self.running) {
            if hypothesis.tokens.len() > rules.prompt_tokens {
                self.find(&hypothesis, reason, rules);
            }
        }
    }

    fn find(&mut self, hypothesis: &Hypothesis, finish_reason: FinishReason, rules: &Rules) {
        let tokens = hypothesis.tokens[rules.prompt_tokens..].to_vec();
        let score = rules.score(hypothesis.sum, tokens.len());
        let index = self.found.partition_point(|found| found.score >= score);
        self.found.insert(index, Beam { tokens, score, finish_reason });
        self.found.truncate(self.size);
    }

    /// Whether nothing better is to be expected.
    fn is_settled(&self, rules: &Rules) -> bool {
        let (Some(best), Some(worst)) = (self.running.first(), self.found.get(self.size - 1))
        else {
            return false;
        };
        let length = match rules.early_stopping {
            EarlyStopping::Full => return true,
            EarlyStopping::Never if rules.length_penalty > 0.0 => rules.max_tokens,
            EarlyStopping::Unlikely | EarlyStopping::Never => {
                best.tokens.len() - rules.prompt_tokens
            }
        };
        rules.score(best.sum, length) <= worst.score
    }
}
