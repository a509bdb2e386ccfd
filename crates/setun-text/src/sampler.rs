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

use crate::survivors::{MARGIN, Ranked, drop_below, keep_top_k, keep_top_p, least_logit};
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

/// The logits that a choice needs.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Needs {
    /// Those of all tokens.
    All,
    /// Those of some.
    Best {
        /// How many of the tokens that are not touched.
        k: usize,
        /// How far below the best of these the others may lie, where not all `k` are needed.
        within: Option<f32>,
        /// The ids that the repetition penalty changes, ascending.
        touched: Vec<u32>,
    },
}

/// What a greedy choice depends on beside the logits, for a device that makes it.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Greedy {
    /// See [`SamplerOptions::repetition_penalty`].
    pub repetition_penalty: f32,
    /// The ids that it changes, ascending.
    pub touched: Vec<u32>,
}

/// Tokens beyond `top_k` that are asked for, because some may tie with the last of them.
const SPARE: usize = 8;

/// Tokens that are asked for where `min_p` alone filters: more than it usually leaves.
const MIN_P_TOKENS: usize = 64;

/// Ranked logits are asked for up to this part of the vocabulary: it must be worth it.
const RANKED_SHARE: usize = 4;

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
        pick(&self.weighted(logits, history)?, draw)
    }

    /// Which logits [`sample_ranked`](Self::sample_ranked) needs to choose the token after
    /// `history`, of a vocabulary of this size.
    #[must_use]
    pub fn needs(&self, history: &[u32], vocabulary: usize) -> Needs {
        let SamplerOptions { temperature, top_k, .. } = self.options;
        let (k, within) = match top_k {
            _ if temperature == 0.0 => (1, None),
            0 if self.is_min_p_alone() => (MIN_P_TOKENS, self.within()),
            0 => return Needs::All,
            top_k => (top_k.saturating_add(SPARE), None),
        };
        let touched = self.touched(history);
        let is_known = touched.last().is_none_or(|&token| (token as usize) < vocabulary);
        if is_known && touched.len().saturating_add(k) <= vocabulary / RANKED_SHARE {
            Needs::Best { k, within, touched }
        } else {
            Needs::All
        }
    }

    /// What [`sample`](Self::sample) applies to the logits before it takes the best; none where
    /// it draws.
    #[must_use]
    pub fn greedy(&self, history: &[u32]) -> Option<Greedy> {
        let repetition_penalty = self.options.repetition_penalty;
        let greedy = || Greedy { repetition_penalty, touched: self.touched(history) };
        self.is_greedy().then(greedy)
    }

    /// Whether it takes the best token, with no draw.
    #[must_use]
    pub fn is_greedy(&self) -> bool {
        self.options.temperature == 0.0
    }

    /// The choice that [`sample`](Self::sample) makes of all logits, from those that
    /// [`needs`](Self::needs) asked for. None where they do not tell it, because none were
    /// given, more tokens tie at the cut of `top_k` than were asked for or `min_p` alone leaves
    /// more; then all logits are needed.
    ///
    /// `ranked` holds (id, logit): first the touched tokens, ascending by id, then the `k` best
    /// others, best first and ties by the lower id, without those that lie farther below the
    /// best of them, in `f32`, than was asked for. No logit of any other token may exceed a
    /// magnitude of 2^64.
    pub fn sample_ranked(
        &self,
        ranked: &[(u32, f32)],
        history: &[u32],
        draw: Draw,
    ) -> Result<Option<Choice>, TextError> {
        let touched = self.touched(history);
        let tokens = ranked.iter().map(|&(token, logit)| {
            let is_touched = touched.binary_search(&token).is_ok();
            self.tempered(token, if is_touched { self.penalise(logit) } else { logit })
        });
        let mut tokens = tokens.collect::<Result<Vec<_>, _>>()?;
        let Some(&last) = tokens.last() else { return Ok(None) };
        if self.options.temperature == 0.0 {
            return Ok(tokens.into_iter().min().map(|best| Choice { token: best.token() }));
        }
        let tells = if self.is_min_p_alone() {
            let unseen = self.most_unseen(&ranked[touched.len().min(ranked.len())..]);
            let best = tokens.iter().min().map_or(last.logit(), |best| best.logit());
            f64::from(unseen) < least_logit(best, self.options.min_p)
        } else {
            keep_top_k(&mut tokens, self.options.top_k);
            !tokens.contains(&last)
        };
        if tells { pick(&self.weigh(tokens)?, draw).map(Some) } else { Ok(None) }
    }

    /// Whether `min_p` is the one filter.
    fn is_min_p_alone(&self) -> bool {
        let SamplerOptions { top_k, top_p, min_p, .. } = self.options;
        top_k == 0 && top_p == 1.0 && min_p > 0.0
    }

    /// What lies farther than this below the best logit has no chance by `min_p`, with some to
    /// spare. None where that is no number.
    #[expect(clippy::cast_possible_truncation, reason = "an infinity is refused")]
    fn within(&self) -> Option<f32> {
        let SamplerOptions { temperature, min_p, .. } = self.options;
        let tempered = 2.0 * MARGIN - libm::log(f64::from(min_p));
        let within = (f64::from(temperature) * tempered) as f32;
        within.is_finite().then_some(within)
    }

    /// No token that is not listed has a higher logit than this, after the temperature. `others`
    /// are the listed ones that are not touched: the last of them is the best that is known of
    /// the rest, unless there are fewer than were asked for.
    fn most_unseen(&self, others: &[(u32, f32)]) -> f32 {
        let [(_, best), ..] = *others else { return f32::INFINITY };
        let last = others.last().map_or(best, |&(_, logit)| logit);
        let most = match self.within() {
            Some(within) if others.len() < MIN_P_TOKENS => best - within,
            _ => last,
        };
        most / self.options.temperature
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
        self.weigh(tokens)
    }

    /// The filters after `top_k`.
    fn weigh(&self, mut tokens: Vec<Ranked>) -> Result<Vec<(Ranked, f64)>, TextError> {
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
                penalised.to_mut()[index] = self.penalise(logit);
            }
        }
        Ok(penalised)
    }

    /// The logit of a token of the history.
    fn penalise(&self, logit: f32) -> f32 {
        let penalty = self.options.repetition_penalty;
        if logit < 0.0 { logit * penalty } else { logit / penalty }
    }

    /// The ids that the repetition penalty changes, ascending.
    fn touched(&self, history: &[u32]) -> Vec<u32> {
        if self.options.repetition_penalty == 1.0 {
            return vec![];
        }
        let mut touched = history.to_vec();
        touched.sort_unstable();
        touched.dedup();
        touched
    }

    /// All tokens with their logits after the temperature, which are finite.
    fn ranked(&self, logits: &[f32]) -> impl Iterator<Item = Result<Ranked, TextError>> {
        (0..=u32::MAX).zip(logits).map(|(token, &logit)| self.tempered(token, logit))
    }

    /// A token with its logit after the temperature.
    fn tempered(&self, token: u32, logit: f32) -> Result<Ranked, TextError> {
        let divisor = if self.options.temperature == 0.0 { 1.0 } else { self.options.temperature };
        let found = logit / divisor;
        let finite = found.is_finite().then(|| Ranked::new(token, found));
        finite.ok_or(TextError::LogitNotFinite { token, found })
    }
}

/// The first token at which the running sum of the weights exceeds the draw's share of it.
fn pick(weighted: &[(Ranked, f64)], draw: Draw) -> Result<Choice, TextError> {
    let threshold = draw.uniform(0) * total(weighted);
    let mut sum = 0.0;
    let drawn = weighted.iter().find(|&&(_, weight)| {
        sum += weight;
        sum > threshold
    });
    let (ranked, _) = drawn.or(weighted.last()).ok_or(TextError::NoLogits)?;
    Ok(Choice { token: ranked.token() })
}

fn total(weighted: &[(Ranked, f64)]) -> f64 {
    weighted.iter().map(|&(_, weight)| weight).sum()
}

#[cfg(test)]
mod ranked_tests;
#[cfg(test)]
mod tests;
