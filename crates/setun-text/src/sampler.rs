//! Picks the next token.
//!
//! In this order, as Hugging Face's `generate` does: repetition penalty, temperature, `top_k`,
//! `top_p`, `min_p`, draw. Each filter sees the probabilities renormalised over what the one
//! before it left. Survivors are a list of (id, logit), never a vocabulary with holes.
//!
//! Penalty and temperature act on the logits in f32, as there. A weight is `exp(logit − best)`
//! in f64 by `libm`, and sums run over the survivors from the best down (ties by the lower id),
//! so a choice is the same natively and in WebAssembly, to the bit.

use std::borrow::Cow;

use crate::survivors::{Ranked, drop_below, keep_top_k, keep_top_p};
use crate::{Draw, SamplerOptions, TextError};

/// Chooses tokens by fixed options. It has no state: equal arguments, equal choice.
#[derive(Clone, Copy, Debug)]
pub struct Sampler {
    options: SamplerOptions,
}

/// The chosen token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Choice {
    /// Its id.
    pub token: u32,
}

impl Sampler {
    /// Checks the options.
    pub fn new(options: SamplerOptions) -> Result<Self, TextError> {
        options.check()?;
        Ok(Self { options })
    }

    /// The options it was made with.
    #[must_use]
    pub fn options(&self) -> &SamplerOptions {
        &self.options
    }

    /// The next token after `history`.
    ///
    /// The draw takes the first survivor at which the running sum of the weights exceeds
    /// `u` times their total, for `u` in `0..1` from [`Draw::uniform`].
    ///
    /// # Shapes
    ///
    /// - `logits`: `[vocab]`, finite.
    /// - `history`: the ids of prompt and generated tokens, in any order; read only if there
    ///   is a repetition penalty.
    pub fn sample(&self, logits: &[f32], history: &[u32], draw: Draw) -> Result<Choice, TextError> {
        if self.options.temperature == 0.0 {
            return Ok(Choice { token: self.best(logits, history)? });
        }
        let weighted = self.weighted(logits, history)?;
        let threshold = draw.uniform(0) * total(&weighted);
        let mut sum = 0.0;
        let drawn = weighted.iter().find(|&&(_, weight)| {
            sum += weight;
            sum > threshold
        });
        let (ranked, _) = drawn.or(weighted.last()).ok_or(TextError::NoLogits)?;
        Ok(Choice { token: ranked.token() })
    }

    /// Every token that [`sample`](Self::sample) could return and its probability, the best
    /// first. Shapes and errors as there.
    pub fn probabilities(
        &self,
        logits: &[f32],
        history: &[u32],
    ) -> Result<Vec<(u32, f64)>, TextError> {
        if self.options.temperature == 0.0 {
            return Ok(vec![(self.best(logits, history)?, 1.0)]);
        }
        let weighted = self.weighted(logits, history)?;
        let total = total(&weighted);
        Ok(weighted.iter().map(|(ranked, weight)| (ranked.token(), weight / total)).collect())
    }

    /// The greedy choice: the highest logit, of equal ones the lowest id.
    fn best(&self, logits: &[f32], history: &[u32]) -> Result<u32, TextError> {
        let penalised = self.penalised(logits, history)?;
        let mut best: Option<Ranked> = None;
        for ranked in self.ranked(&penalised) {
            let ranked = ranked?;
            best = Some(best.map_or(ranked, |best| best.min(ranked)));
        }
        best.map(Ranked::token).ok_or(TextError::NoLogits)
    }

    /// The survivors of all filters and their weights, the best first with weight 1.
    fn weighted(&self, logits: &[f32], history: &[u32]) -> Result<Vec<(Ranked, f64)>, TextError> {
        let penalised = self.penalised(logits, history)?;
        let mut tokens = self.ranked(&penalised).collect::<Result<Vec<_>, _>>()?;
        keep_top_k(&mut tokens, self.options.top_k);
        if self.options.top_p == 1.0 {
            drop_below(&mut tokens, self.options.min_p);
        }
        tokens.sort_unstable();
        let best = f64::from(tokens.first().ok_or(TextError::NoLogits)?.logit());
        let weight = |token: Ranked| libm::exp(f64::from(token.logit()) - best);
        let mut weighted: Vec<_> = tokens.into_iter().map(|token| (token, weight(token))).collect();
        if self.options.top_p < 1.0 {
            keep_top_p(&mut weighted, f64::from(self.options.top_p));
        }
        let least = f64::from(self.options.min_p);
        weighted.retain(|&(_, weight)| weight >= least);
        Ok(weighted)
    }

    /// The logits after the repetition penalty, which makes every token of `history` less
    /// likely, once however often it occurred (more likely if it is below 1).
    fn penalised<'a>(
        &self,
        logits: &'a [f32],
        history: &[u32],
    ) -> Result<Cow<'a, [f32]>, TextError> {
        let penalty = self.options.repetition_penalty;
        let mut penalised = Cow::Borrowed(logits);
        if penalty != 1.0 {
            for &token in history {
                let index = token as usize;
                let vocabulary = logits.len();
                let &logit =
                    logits.get(index).ok_or(TextError::TokenRange { token, vocabulary })?;
                penalised.to_mut()[index] =
                    if logit < 0.0 { logit * penalty } else { logit / penalty };
            }
        }
        Ok(penalised)
    }

    /// All tokens with their logits after the temperature, which are finite.
    fn ranked(&self, logits: &[f32]) -> impl Iterator<Item = Result<Ranked, TextError>> {
        let divisor = if self.options.temperature == 0.0 { 1.0 } else { self.options.temperature };
        (0..=u32::MAX).zip(logits).map(move |(token, logit)| {
            let found = logit / divisor;
            let finite = found.is_finite().then(|| Ranked::new(token, found));
            finite.ok_or(TextError::LogitNotFinite { token, found })
        })
    }
}

fn total(weighted: &[(Ranked, f64)]) -> f64 {
    weighted.iter().map(|&(_, weight)| weight).sum()
}

#[cfg(test)]
mod tests {
    use proptest::{collection::vec, prelude::*};

    use super::*;

    fn sampler(options: SamplerOptions) -> Sampler {
        Sampler::new(options).expect("the options are in range")
    }

    fn greedy() -> SamplerOptions {
        SamplerOptions::default()
    }

    fn choose(options: SamplerOptions, logits: &[f32], history: &[u32]) -> u32 {
        sampler(options).sample(logits, history, Draw::default()).expect("finite logits").token
    }

    #[test]
    fn greedy_takes_the_lowest_of_equal_ids_whatever_the_filters_say() {
        let options = SamplerOptions { top_k: 1, top_p: 0.1, min_p: 1.0, ..greedy() };
        assert_eq!(choose(options, &[-1.0, 0.5, 0.5, -0.0], &[]), 1);
        assert_eq!(choose(greedy(), &[-0.0, 0.0], &[]), 0);
    }

    #[test]
    fn greedy_obeys_the_repetition_penalty() {
        let options = SamplerOptions { repetition_penalty: 2.0, ..greedy() };
        assert_eq!(choose(options, &[3.0, 2.0, 0.0], &[0, 0]), 1);
        assert_eq!(choose(options, &[-1.0, -1.5], &[0]), 1);
        assert_eq!(choose(options, &[3.0, 1.5], &[0]), 0, "equal after the penalty");
    }

    #[test]
    fn names_a_logit_that_is_not_finite() {
        for bad in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
            for temperature in [0.0, 1.0] {
                let options = SamplerOptions { temperature, top_k: 1, ..greedy() };
                let error = sampler(options).sample(&[5.0, bad], &[], Draw::default());
                assert!(matches!(error, Err(TextError::LogitNotFinite { token: 1, .. })));
            }
        }
        let options = SamplerOptions { temperature: 1e-6, ..greedy() };
        let error = sampler(options).sample(&[0.0, 5e32], &[], Draw::default());
        assert!(matches!(error, Err(TextError::LogitNotFinite { token: 1, .. })), "it overflows");
        let error = sampler(greedy()).sample(&[], &[], Draw::default());
        assert!(matches!(error, Err(TextError::NoLogits)));
    }

    #[test]
    fn names_a_token_of_the_history_without_a_logit() {
        let options = SamplerOptions { repetition_penalty: 1.1, ..greedy() };
        let error = sampler(options).sample(&[1.0, 2.0], &[1, 2], Draw::default());
        assert!(matches!(error, Err(TextError::TokenRange { token: 2, vocabulary: 2 })));
        let ignored = sampler(greedy()).sample(&[1.0, 2.0], &[9], Draw::default());
        assert_eq!(ignored.expect("no penalty, no history").token, 1);
    }

    #[test]
    fn a_very_small_temperature_is_all_but_greedy() {
        let options = SamplerOptions { temperature: 1e-6, ..greedy() };
        let found = sampler(options).probabilities(&[1.0, 2.0, 1.999], &[]).expect("finite");
        assert_eq!(found, [(1, 1.0), (2, 0.0), (0, 0.0)]);
    }

    #[test]
    fn no_share_of_the_probability_leaves_the_best_token() {
        let options = SamplerOptions { temperature: 1.0, top_p: 0.0, ..greedy() };
        let found = sampler(options).probabilities(&[1.0, 2.0, 2.0, 0.5], &[]).expect("finite");
        assert_eq!(found, [(1, 1.0)]);
    }

    #[test]
    fn drawn_tokens_have_the_probabilities_promised() {
        let options = SamplerOptions { temperature: 0.8, top_k: 4, min_p: 0.05, ..greedy() };
        let logits = [0.1, 1.5, -0.3, 2.0, 0.9, 1.5];
        let sampler = sampler(options);
        let expected = sampler.probabilities(&logits, &[]).expect("finite");
        let mut counts = [0_u32; 6];
        for index in 0..40_000 {
            let draw = Draw { seed: 3, sequence: 0, index };
            counts[sampler.sample(&logits, &[], draw).expect("finite").token as usize] += 1;
        }
        for (token, probability) in expected {
            let share = f64::from(std::mem::take(&mut counts[token as usize])) / 40_000.0;
            assert!((share - probability).abs() < 0.01, "{token}: {share}, not {probability}");
        }
        assert_eq!(counts, [0; 6], "nothing else was drawn");
    }

    /// A written-out form of the filters: softmax after each, by the letter of their definition.
    fn by_definition(options: &SamplerOptions, logits: &[f32]) -> Vec<u32> {
        let mut left: Vec<(u32, f64)> = (0..)
            .zip(logits)
            .map(|(token, &logit)| (token, f64::from(logit / options.temperature)))
            .collect();
        left.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
        if let Some(&(_, last)) = options.top_k.checked_sub(1).and_then(|index| left.get(index)) {
            left.retain(|&(_, logit)| logit >= last);
        }
        let softmax = |left: &[(u32, f64)]| -> Vec<f64> {
            let total: f64 = left.iter().map(|&(_, logit)| (logit - left[0].1).exp()).sum();
            left.iter().map(|&(_, logit)| (logit - left[0].1).exp() / total).collect()
        };
        let p = softmax(&left);
        let share = f64::from(options.top_p);
        let stays =
            |index: usize| index == 0 || share == 1.0 || p[..index].iter().sum::<f64>() < share;
        left = (0..left.len()).filter(|&index| stays(index)).map(|index| left[index]).collect();
        let p = softmax(&left);
        let stays = |index: usize| p[index] >= f64::from(options.min_p) * p[0];
        (0..left.len()).filter(|&index| stays(index)).map(|index| left[index].0).collect()
    }

    proptest! {
        #[test]
        fn keeps_what_the_definition_keeps(
            logits in vec(-8.0_f32..8.0, 1..60),
            temperature in 0.3_f32..3.0,
            top_k in 0..70_usize,
            top_p in 0.05_f32..=1.0,
            min_p in 0.0_f32..0.9,
        ) {
            let options = SamplerOptions { temperature, top_k, top_p, min_p, ..greedy() };
            let found = sampler(options).probabilities(&logits, &[]).expect("finite");
            let ids: Vec<u32> = found.iter().map(|&(token, _)| token).collect();
            prop_assert_eq!(ids, by_definition(&options, &logits));
            let total: f64 = found.iter().map(|&(_, probability)| probability).sum();
            prop_assert!((total - 1.0).abs() < 1e-12);
        }

        #[test]
        fn draws_only_survivors_and_forgets_nothing(
            logits in vec(-4.0_f32..4.0, 1..60),
            seed: u64,
            index: u64,
            top_k in 0..10_usize,
        ) {
            let sampler = sampler(SamplerOptions { temperature: 1.0, top_k, ..greedy() });
            let draw = Draw { seed, sequence: 0, index };
            let token = sampler.sample(&logits, &[], draw).expect("finite").token;
            let survivors = sampler.probabilities(&logits, &[]).expect("finite");
            prop_assert!(survivors.iter().any(|&(id, _)| id == token));
            prop_assert_eq!(sampler.sample(&logits, &[], draw).expect("finite").token, token);
        }
    }
}
