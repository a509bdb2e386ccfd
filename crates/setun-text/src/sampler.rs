//! Picks the next token.
//!
//! Steps are taken in Hugging Face's order unless another is given ([`SamplingStep::ORDER`]).
//! Each sees what the one before it left, with probabilities renormalised over that. Tokens
//! are a list of (id, logit), never a vocabulary with holes.
//!
//! Penalties, biases and temperatures act on the logits in f32, as there. A weight is
//! `exp(logit − best)` in f64 by `libm`, and sums run over the candidates from the best down (ties
//! by the lower id). A draw takes the candidate with the highest logit after [noise](setun_ops::noise).
//! So a choice is the same natively and in WebAssembly, to the bit.

mod changes;
mod dry;
mod filters;
mod ranked;

use std::sync::Arc;

use crate::{
    Candidates, Draw, SamplerOptions, SamplerState, SamplingStep, Step, TextError,
    logits_state::{LogitsState, finite},
    ranked_candidates::{Ranked, RankedCandidates},
};

pub use ranked::Needs;

/// Chooses tokens by fixed options. It has no state of its own: equal arguments, equal choice. Clones
/// share the options.
#[derive(Clone, Debug)]
pub struct Sampler {
    options: Arc<SamplerOptions>,
    steps: Vec<SamplingStep>, // those that do something, in their order
    ahead: usize,             // how many of them ask nothing of the other tokens
}

/// The chosen token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Choice {
    /// Its id.
    pub token: u32,
}

/// What a greedy choice depends on beside the logits, for a device that makes it.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Greedy {
    /// See [`SamplerOptions::repetition_penalty`].
    pub repetition_penalty: f32,
    /// The ids that it changes, ascending.
    pub touched: Vec<u32>,
    /// Ids, ascending, and what is added to their logits after the penalty.
    pub biases: Vec<(u32, f32)>,
}

impl Sampler {
    /// Checks the options.
    ///
    /// # Errors
    ///
    /// If one is out of its range, a list that may not be empty is, or a step is ordered twice.
    pub fn new(mut options: SamplerOptions) -> Result<Self, TextError> {
        options.check()?;
        let SamplerOptions { allowed_tokens, banned_tokens, dry_breakers, .. } = &mut options;
        for tokens in allowed_tokens.iter_mut().chain([banned_tokens, dry_breakers]) {
            tokens.sort_unstable();
            tokens.dedup();
        }
        let mut steps = SamplingStep::ordered(&options.order)?;
        steps.retain(|&step| options.takes(step));
        let is_ahead = |&&step: &&SamplingStep| match step {
            SamplingStep::Temperature => options.dynamic_temperature == 0.0,
            step => step.is_change() || step.is_ban(),
        };
        let ahead = steps.iter().take_while(is_ahead).count();
        Ok(Self { options: Arc::new(options), steps, ahead })
    }

    /// The options it was made with.
    #[must_use]
    pub fn options(&self) -> &SamplerOptions {
        &self.options
    }

    /// Whether it takes the best token, with no draw.
    #[must_use]
    pub fn is_greedy(&self) -> bool {
        self.options.temperature == 0.0
    }

    /// Whether a choice depends on what was left of the choices before it, beside the tokens.
    #[must_use]
    pub fn has_state(&self) -> bool {
        self.steps.contains(&SamplingStep::Mirostat)
    }

    /// The next token.
    ///
    /// The draw takes the candidate with the highest sum, in f64, of its logit after all steps and
    /// its own Gumbel [noise](setun_ops::noise), of equal ones the lowest id. That is a draw by the
    /// probabilities of the candidates, in which a token's noise does not depend on the others.
    /// `state` is that of the sequence, and changes only where a token is chosen.
    ///
    /// # Shapes
    ///
    /// - `logits`: `[vocab]`, finite.
    ///
    /// # Errors
    ///
    /// If there is no token to choose, a logit is not finite, or a token that an option requests
    /// has none.
    pub fn sample(
        &self,
        logits: &[f32],
        step: &Step<'_>,
        state: &mut SamplerState,
    ) -> Result<Choice, TextError> {
        let (ahead, rest) = self.steps.split_at(self.ahead);
        let mut remaining = self.take(ahead, row(logits, step), step, state)?;
        if let ([SamplingStep::TopP], false) = (rest, self.is_greedy()) {
            let list = remaining.list()?;
            let share = f64::from(self.options.top_p);
            if let Some(token) = list.draw_top_p(share, step.draw.noise()) {
                return Ok(Choice { token });
            }
            remaining = LogitsState::List(list);
        }
        let remaining = self.take(rest, remaining, step, state)?;
        self.draw(remaining, step.draw, state)
    }

    /// Every token that [`sample`](Self::sample) could return and its probability, the best
    /// first, whatever it would draw; XTC alone is drawn. Shapes and errors as there.
    pub fn probabilities(
        &self,
        logits: &[f32],
        step: &Step<'_>,
        state: &SamplerState,
    ) -> Result<Vec<(u32, f64)>, TextError> {
        let remaining = self.take(&self.steps, row(logits, step), step, state)?;
        if self.is_greedy() {
            return Ok(vec![(remaining.best()?.token(), 1.0)]);
        }
        let mut list = remaining.list()?;
        let (tokens, weights) = list.weighted();
        let total: f64 = weights.iter().sum();
        Ok(tokens.iter().zip(weights).map(|(token, w)| (token.token(), w / total)).collect())
    }

    /// What the steps that act on single tokens leave of scores: penalties, biases, bans and one's
    /// own, in their order, and whatever `step` allows. For searches, whose scores are
    /// log-probabilities; temperatures and all that drops tokens by their probability are left
    /// out. Each token that may come and its score; none where none may.
    ///
    /// # Shapes
    ///
    /// - `scores`: `[vocab]`, finite.
    ///
    /// # Errors
    ///
    /// If a score is not finite, or a token that an option requests has none.
    pub fn rescore(&self, scores: &[f32], step: &Step<'_>) -> Result<Vec<(u32, f32)>, TextError> {
        let of_tokens = self.steps.iter().filter(|taken| taken.is_of_tokens());
        let of_tokens: Vec<_> = of_tokens.copied().collect();
        let remaining = self.take(&of_tokens, row(scores, step), step, &SamplerState::default());
        let pair = |ranked: &Ranked| (ranked.token(), ranked.logit());
        match remaining.and_then(LogitsState::list) {
            Ok(list) => Ok(list.tokens().iter().map(pair).collect()),
            Err(TextError::NoTokenLeft) => Ok(vec![]),
            Err(error) => Err(error),
        }
    }

    /// What the choice does to the logits before it takes the best, where a device can do that
    /// by itself, also for tokens that follow; none where it cannot.
    #[must_use]
    pub fn greedy(&self, step: &Step<'_>) -> Option<Greedy> {
        self.is_argmax(step).then(|| Greedy {
            repetition_penalty: self.options.repetition_penalty,
            touched: if self.steps.contains(&SamplingStep::RepetitionPenalty) {
                ids(&self.changes(SamplingStep::RepetitionPenalty, step))
            } else {
                vec![]
            },
            biases: self.options.logit_bias.iter().map(|(&token, &bias)| (token, bias)).collect(),
        })
    }

    /// Whether [`greedy`](Self::greedy) gives anything: a greedy choice with no more than a
    /// penalty, and biases after it.
    #[must_use]
    pub fn is_argmax(&self, step: &Step<'_>) -> bool {
        use SamplingStep as Taken;
        let is_long = step.generated().len() >= self.options.min_tokens;
        let mut taken = self.steps.iter().filter(|&&taken| taken != Taken::MinTokens || !is_long);
        let mut is_biased = false;
        let is_argmax = taken.all(|taken| match taken {
            Taken::LogitBias => !std::mem::replace(&mut is_biased, true),
            Taken::RepetitionPenalty => !is_biased,
            _ => false,
        });
        self.is_greedy() && step.allowed.is_none() && is_argmax
    }

    /// Takes steps, one after the other.
    fn take<'a>(
        &self,
        steps: &[SamplingStep],
        mut remaining: LogitsState<'a>,
        step: &Step<'_>,
        state: &SamplerState,
    ) -> Result<LogitsState<'a>, TextError> {
        for &taken in steps {
            remaining = match taken {
                SamplingStep::Temperature if self.options.dynamic_temperature == 0.0 => {
                    remaining.divide(self.options.temperature)?
                }
                _ if taken.is_change() => {
                    remaining.change(taken, &self.changes(taken, step))?;
                    remaining
                }
                _ if taken.is_ban() => {
                    self.drop_tokens(taken, &mut remaining, step);
                    remaining
                }
                _ => {
                    let mut list = remaining.list()?;
                    self.filter(taken, &mut list, step, state)?;
                    LogitsState::List(list)
                }
            };
        }
        Ok(remaining)
    }

    fn drop_tokens(&self, taken: SamplingStep, remaining: &mut LogitsState<'_>, step: &Step<'_>) {
        let bans = self.bans(taken, step);
        if !bans.is_empty() {
            remaining.ban(bans);
        }
        if let (SamplingStep::Tokens, Some(allowed)) = (taken, &self.options.allowed_tokens) {
            remaining.allow_only(allowed);
        }
    }

    /// A step that looks at all tokens that are left, of which there are some.
    fn filter(
        &self,
        taken: SamplingStep,
        list: &mut RankedCandidates,
        step: &Step<'_>,
        state: &SamplerState,
    ) -> Result<(), TextError> {
        let options = &self.options;
        match taken {
            SamplingStep::LogitsProcessors => return self.process(list, step),
            SamplingStep::Temperature => {
                let middle = (options.temperature, options.dynamic_temperature);
                let exponent = options.dynamic_temperature_exponent;
                match filters::dynamic_temperature(list, middle, exponent) {
                    Some(divisor) => list.change(|ranked| Some(ranked.logit() / divisor))?,
                    None => list.keep_first(1),
                }
            }
            SamplingStep::TopNSigma => filters::top_n_sigma(list, options.top_n_sigma),
            SamplingStep::TopK => list.keep_top_k(options.top_k),
            SamplingStep::TopP => list.keep_top_p(f64::from(options.top_p)),
            SamplingStep::MinP => list.keep_min_p(options.min_p),
            SamplingStep::TypicalP => filters::typical_p(list, options.typical_p),
            SamplingStep::EpsilonCutoff => {
                filters::epsilon_cutoff(list, f64::from(options.epsilon_cutoff));
            }
            SamplingStep::EtaCutoff => filters::eta_cutoff(list, f64::from(options.eta_cutoff)),
            SamplingStep::Xtc => {
                if step.draw.uniform(1) < f64::from(options.xtc_probability) {
                    filters::xtc(list, f64::from(options.xtc_threshold));
                }
            }
            SamplingStep::Mirostat => {
                filters::mirostat(list, state.max_surprise(f64::from(options.mirostat_tau)));
            }
            SamplingStep::LogitBias
            | SamplingStep::RepetitionPenalty
            | SamplingStep::FrequencyPenalty
            | SamplingStep::PresencePenalty
            | SamplingStep::Dry
            | SamplingStep::NoRepeatNgram
            | SamplingStep::BannedSequences
            | SamplingStep::MinTokens
            | SamplingStep::Tokens => {} // taken before, on single tokens
        }
        Ok(())
    }

    fn process(&self, list: &mut RankedCandidates, step: &Step<'_>) -> Result<(), TextError> {
        let tokens = list.tokens().iter().map(|token| (token.token(), token.logit())).collect();
        let mut candidates = Candidates::new(tokens);
        for processor in &self.options.logits_processors {
            processor.process(&mut candidates, step)?;
        }
        let tokens = candidates.into_tokens();
        let tokens = tokens.into_iter().map(|(token, logit)| finite(token, logit));
        *list = RankedCandidates::new(tokens.collect::<Result<_, _>>()?);
        Ok(())
    }

    /// The choice among what all steps have left.
    fn draw(
        &self,
        remaining: LogitsState<'_>,
        draw: Draw,
        state: &mut SamplerState,
    ) -> Result<Choice, TextError> {
        if self.is_greedy() {
            return Ok(Choice { token: remaining.best()?.token() });
        }
        let mut list = remaining.list()?;
        let (drawn, _) = list.draw(draw.noise(), None).ok_or(TextError::NoTokenLeft)?;
        if self.has_state() {
            let (tokens, weights) = list.weighted();
            let total: f64 = weights.iter().sum();
            let weight = tokens.iter().zip(weights).find(|(ranked, _)| **ranked == drawn);
            let (_, &weight) = weight.ok_or(TextError::NoTokenLeft)?;
            let target = f64::from(self.options.mirostat_tau);
            let surprise = filters::surprise(weight, total);
            state.surprised(surprise, target, f64::from(self.options.mirostat_eta));
        }
        Ok(Choice { token: drawn.token() })
    }
}

/// A row of logits before the first step.
fn row<'a>(logits: &'a [f32], step: &Step<'_>) -> LogitsState<'a> {
    let mut remaining = LogitsState::row(logits);
    if let Some(allowed) = step.allowed {
        remaining.allow(allowed);
    }
    remaining
}

fn ids<T>(changes: &[(u32, T)]) -> Vec<u32> {
    changes.iter().map(|&(token, _)| token).collect()
}

#[cfg(test)]
mod definitions;
#[cfg(test)]
mod ranked_tests;
#[cfg(test)]
mod tests;
