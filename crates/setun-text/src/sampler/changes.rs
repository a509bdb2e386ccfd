//! Which tokens the steps before the temperature change or drop.

use std::collections::BTreeMap;

use super::{Sampler, dry::repetitions};
use crate::{SamplingStep, Step, logits_state::Change};

/// The most that DRY takes from a logit: enough for no chance, and finite at every temperature.
const MAX_LOSS: f64 = 1e30;

impl Sampler {
    /// What a step changes, ascending by id.
    #[expect(clippy::cast_precision_loss, reason = "a count of tokens")]
    pub(super) fn changes(&self, taken: SamplingStep, step: &Step<'_>) -> Vec<(u32, Change)> {
        let options = &self.options;
        match taken {
            SamplingStep::LogitBias => {
                let add = |(&token, &bias)| (token, Change::Add(bias));
                options.logit_bias.iter().map(add).collect()
            }
            SamplingStep::RepetitionPenalty => {
                let penalise = |token| (token, Change::Penalise(options.repetition_penalty));
                distinct(step.history).into_iter().map(penalise).collect()
            }
            SamplingStep::FrequencyPenalty => {
                let mut counts = BTreeMap::new();
                for &token in step.generated() {
                    *counts.entry(token).or_insert(0_usize) += 1;
                }
                let loss = |count: usize| options.frequency_penalty * count as f32;
                counts.into_iter().map(|(token, n)| (token, Change::Add(-loss(n)))).collect()
            }
            SamplingStep::PresencePenalty => {
                let lose = |token| (token, Change::Add(-options.presence_penalty));
                distinct(step.generated()).into_iter().map(lose).collect()
            }
            SamplingStep::Dry => {
                let lengths = repetitions(step.history, options.dry_range, &options.dry_breakers);
                lengths.into_iter().filter_map(|(token, n)| Some((token, self.loss(n)?))).collect()
            }
            _ => vec![],
        }
    }

    /// What DRY does to a token that would prolong a repetition of this length.
    #[expect(
        clippy::cast_precision_loss,
        clippy::cast_possible_truncation,
        reason = "at most 50, and at most 1e30"
    )]
    fn loss(&self, length: usize) -> Option<Change> {
        let excess = length.checked_sub(self.options.dry_allowed_length)?;
        let growth = libm::pow(f64::from(self.options.dry_base), excess as f64);
        let loss = (f64::from(self.options.dry_multiplier) * growth).min(MAX_LOSS);
        Some(Change::Add(-(loss as f32)))
    }

    /// What a step drops, beside what is not allowed.
    pub(super) fn bans(&self, taken: SamplingStep, step: &Step<'_>) -> Vec<u32> {
        let options = &self.options;
        match taken {
            SamplingStep::NoRepeatNgram => continuations(step.history, options.no_repeat_ngram),
            SamplingStep::BannedSequences => {
                let sequences = options.banned_sequences.iter();
                let last = |sequence: &Vec<u32>| {
                    let (&last, before) = sequence.split_last()?;
                    step.history.ends_with(before).then_some(last)
                };
                sequences.filter_map(last).collect()
            }
            SamplingStep::MinTokens if step.generated().len() < options.min_tokens => {
                options.end_tokens.clone()
            }
            SamplingStep::Tokens => options.banned_tokens.clone(),
            _ => vec![],
        }
    }
}

/// Each token once, ascending.
pub(super) fn distinct(tokens: &[u32]) -> Vec<u32> {
    let mut distinct = tokens.to_vec();
    distinct.sort_unstable();
    distinct.dedup();
    distinct
}

/// The tokens that would repeat a run of `size` tokens: each that followed, somewhere, what the
/// last `size − 1` tokens are.
fn continuations(history: &[u32], size: usize) -> Vec<u32> {
    let Some(start) = (history.len() + 1).checked_sub(size) else { return vec![] };
    let (end, runs) = (&history[start..], history.windows(size));
    runs.filter_map(|run| run.strip_prefix(end)?.first().copied()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_ngram_is_never_completed_twice() {
        let history = [1, 2, 3, 1, 2, 4, 1, 2];
        assert_eq!(continuations(&history, 3), [3, 4]);
        assert_eq!(continuations(&history, 2), [3, 4], "what followed a 2");
        assert_eq!(continuations(&history, 1), history, "nothing twice");
        assert!(continuations(&history, 4).is_empty());
        assert!(continuations(&history, 9).is_empty() && continuations(&history, 10).is_empty());
        assert!(continuations(&[], 1).is_empty() && continuations(&[], 3).is_empty());
        assert_eq!(continuations(&[5, 5], 2), [5]);
    }
}
