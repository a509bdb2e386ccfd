//! Choices from few logits, equal to those from all.

use setun_ops::{
    noise::precedes,
    top_logits::{NoisyScores, Ranked as Entry},
};

use super::{Choice, Sampler, changes::distinct, ids};
use crate::{
    SamplerState, SamplingStep, Step, TextError,
    logits_state::{LogitsState, finite},
    ranked_candidates::{MARGIN, RankedCandidates, Standing, min_logit},
};

/// The logits that a choice needs.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Needs {
    /// Those of all tokens.
    All,
    /// Those of some.
    TopLogits {
        /// How many of the tokens that are not touched.
        k: usize,
        /// How far below the best of these the others may lie, where not all `k` are needed.
        within: Option<f32>,
        /// What "best" means, if not the highest logits.
        noise: Option<NoisyScores>,
        /// How many of the highest logits follow them, where "best" means other ones.
        top: usize,
        /// Whether a bound of the sum of the weights of those that are not touched follows.
        sum: bool,
        /// The ids that are requested in any case, ascending: those that a penalty, a bias or a ban
        /// changes, or all that are allowed where these are few.
        touched: Vec<u32>,
    },
}

/// Tokens beyond `top_k` that are requested, because some may tie with the last of them.
const SPARE: usize = 8;

/// Tokens that are requested where `min_p` alone filters: more than it usually leaves.
pub(super) const MIN_P_TOKENS: usize = 64;

/// Tokens requested in addition where some are not allowed.
const MASKED: usize = 15;

/// Allowed tokens are requested one by one if there are no more.
const FEW: usize = 1024;

/// Ranked logits are requested up to this part of the vocabulary: it must be worth it.
const RANKED_SHARE: usize = 4;

/// Tokens that are requested where a share of the probability filters: what is drawn is mostly one of them. Of a table of
/// random rows more of them would leave a screen too many candidates.
pub(super) const SHARE_TOKENS: usize = 32;

/// How the steps that look at all tokens begin.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Cut {
    /// The best one is taken.
    Greedy,
    /// `top_k` leaves few.
    TopK,
    /// `min_p` leaves few.
    MinP,
    /// The one with the best score is taken.
    Draw,
    /// The one with the best score is taken, if all filters that follow leave it.
    Filters,
}

impl Sampler {
    /// Which logits [`sample_ranked`](Self::sample_ranked) needs to choose the next token of a
    /// vocabulary of this size.
    #[must_use]
    pub fn needs(&self, step: &Step<'_>, vocabulary: usize) -> Needs {
        let is_known = |&token: &u32| (token as usize) < vocabulary;
        let few = self.few_allowed(step, FEW);
        let (changed, mut dropped) = self.touched(step);
        dropped.retain(is_known);
        let cut = self.cut();
        let (k, within, touched) = match (cut, &few) {
            (_, Some(few)) => (1, None, few.iter().copied().filter(is_known).collect::<Vec<_>>()),
            (None, None) => return Needs::All,
            (Some(cut), None) => {
                let (k, within) = self.most(cut, step);
                (k, within, [changed.as_slice(), &dropped].concat())
            }
        };
        let touched = distinct(&touched);
        let (noise, top) = match cut.filter(|_| few.is_none()) {
            Some(Cut::Draw) => (Some(self.scores(step)), 0),
            // The weights of tokens that are not allowed do not count.
            Some(Cut::Filters) if self.is_masked(step) => return Needs::All,
            Some(Cut::Filters) => (Some(self.scores(step)), SHARE_TOKENS),
            _ => (None, 0),
        };
        let sum = top > 0 && self.steps[self.ahead..].iter().any(|&taken| needs_sum(taken));
        let is_few = touched.len().saturating_add(k + top) <= vocabulary / RANKED_SHARE;
        if changed.iter().all(is_known) && is_few {
            Needs::TopLogits { k, within, noise, top, sum, touched }
        } else {
            Needs::All
        }
    }

    /// The choice that [`sample`](Self::sample) makes of all logits, from those that
    /// [`needs`](Self::needs) requested. None where they do not decide it: none were given, more
    /// tokens tie at the cut of `top_k` than were requested, `min_p` leaves more, filters may drop
    /// the token that is drawn of all, or too few of the best are allowed. Then all logits are
    /// needed, and the state is as it was.
    ///
    /// `ranked` holds (id, logit): first the touched tokens, ascending by id, then the `k` best
    /// others, best first and ties by the lower id, without those that lie farther below the
    /// best of them, in `f32`, than was requested. Where noise was requested, the best are those
    /// with the highest scores, and those with the highest logits may follow them, and the
    /// [sum](setun_ops::top_logits). No logit of any other token may exceed a magnitude of 2^64.
    ///
    /// # Errors
    ///
    /// Those of [`sample`](Self::sample).
    pub fn sample_ranked(
        &self,
        ranked: &[(u32, f32)],
        step: &Step<'_>,
        state: &mut SamplerState,
    ) -> Result<Option<Choice>, TextError> {
        let (ranked, sum) = match *ranked {
            [ref ranked @ .., (Entry::SUM, sum)] => (ranked, sum),
            _ => (ranked, f32::INFINITY),
        };
        let tokens = ranked.iter().map(|&(token, logit)| finite(token, logit));
        let mut remaining =
            LogitsState::List(RankedCandidates::new(tokens.collect::<Result<_, _>>()?));
        if ranked.is_empty() {
            return Ok(None);
        }
        if let Some(allowed) = step.allowed {
            remaining.allow(allowed);
        }
        let (ahead, rest) = self.steps.split_at(self.ahead);
        let mut remaining = self.take(ahead, remaining, step, state)?;
        // A mask may not have been known yet when logits were requested.
        let are_all_there = self.few_allowed(step, FEW.min(ranked.len())).is_some_and(|few| {
            if step.allowed.is_none() {
                return true;
            }
            let there = distinct(&ranked.iter().map(|&(token, _)| token).collect::<Vec<_>>());
            // A token by score and by logit would have its weight twice.
            there.len() == ranked.len()
                && few.iter().all(|token| there.binary_search(token).is_ok())
        });
        if !are_all_there && self.cut() == Some(Cut::Filters) {
            let drawn = self.draw_unfiltered(&mut remaining, (ranked, sum), step);
            return Ok(drawn.map(|token| Choice { token }));
        }
        if !are_all_there && !self.decides(&mut remaining, ranked, step) {
            return Ok(None);
        }
        let remaining = self.take(rest, remaining, step, state)?;
        self.draw(remaining, step.draw, state).map(Some)
    }

    /// Whether the choice is this token where no other is allowed, whatever the logits are and
    /// without a change of the state.
    #[must_use]
    pub fn takes_only(&self, token: u32, step: &Step<'_>) -> bool {
        use SamplingStep as Taken;
        self.steps.iter().all(|&taken| match taken {
            Taken::NoRepeatNgram | Taken::BannedSequences | Taken::MinTokens => {
                !self.bans(taken, step).contains(&token)
            }
            Taken::Temperature | Taken::TopK | Taken::TopP | Taken::MinP => true,
            taken => taken.is_change(),
        })
    }

    /// Whether no token that is not listed can be among those that the next step leaves. The last
    /// that is listed is not touched, and none that is missing has a higher logit.
    fn decides(
        &self,
        remaining: &mut LogitsState<'_>,
        ranked: &[(u32, f32)],
        step: &Step<'_>,
    ) -> bool {
        let (LogitsState::List(list), Some(&(last, last_logit))) = (remaining, ranked.last())
        else {
            return false;
        };
        let Some(best) = list.best() else { return false };
        match self.cut() {
            Some(Cut::Greedy) => finite(last, last_logit).is_ok_and(|last| best <= last),
            Some(Cut::TopK) => {
                let count = self.options.top_k;
                list.keep_top_k(count);
                let worst = list.tokens().iter().max().map(|worst| worst.logit());
                list.tokens().len() >= count
                    && worst.is_some_and(|worst| worst > last_logit / self.divisor())
            }
            Some(Cut::Draw) => {
                let scores = self.scores(step);
                let last = (last, scores.score(last, last_logit));
                let drawn = list.draw(scores.noise, None);
                drawn.is_some_and(|(drawn, score)| !precedes(last, (drawn.token(), score)))
            }
            Some(Cut::MinP) => {
                let unseen = self.max_unseen(self.others(ranked, step), step);
                f64::from(unseen) < min_logit(best.logit(), self.options.min_p)
            }
            Some(Cut::Filters) | None => false,
        }
    }

    /// The token with the best score of all, if it is sure that the filters leave it: then it has the
    /// best score of those that they leave. The others are one by its score, then those by logit.
    fn draw_unfiltered(
        &self,
        remaining: &mut LogitsState<'_>,
        (ranked, sum): (&[(u32, f32)], f32),
        step: &Step<'_>,
    ) -> Option<u32> {
        let LogitsState::List(list) = remaining else { return None };
        let others = self.others(ranked, step);
        let [_, (_, best_other), .., (_, last)] = *others else { return None };
        if step.allowed.is_some() {
            return None;
        }
        let (drawn, _) = list.draw(step.draw.noise(), None)?;
        let best = f64::from(list.best()?.logit());
        let weight = |logit: f32| libm::exp(f64::from(logit) - best);
        let touched = &ranked[..ranked.len() - others.len()];
        let mut total = f64::from(sum) * weight(best_other / self.divisor());
        for ranked in list.tokens() {
            if touched.binary_search_by_key(&ranked.token(), |&(token, _)| token).is_ok() {
                total += weight(ranked.logit());
            }
        }
        let mut standing = list.standing(drawn, last / self.divisor(), total);
        let rest = &self.steps[self.ahead..];
        rest.iter().all(|&taken| self.leaves(taken, &mut standing)).then_some(drawn.token())
    }

    /// Whether a filter is sure to leave a token.
    fn leaves(&self, taken: SamplingStep, standing: &mut Standing) -> bool {
        let options = &self.options;
        match taken {
            SamplingStep::TopK => standing.stays_by_top_k(options.top_k),
            SamplingStep::TopP => standing.stays_by_top_p(options.top_p.into()),
            SamplingStep::MinP => standing.stays_by_min_p(options.min_p.into()),
            SamplingStep::TypicalP => standing.stays_by_typical_p(options.typical_p.into()),
            SamplingStep::EpsilonCutoff => {
                standing.stays_by_probability(options.epsilon_cutoff.into())
            }
            // Whatever the entropy is, the least probability is at most this.
            SamplingStep::EtaCutoff => standing.stays_by_probability(options.eta_cutoff.into()),
            _ => false,
        }
    }

    /// The listed tokens that are not touched.
    fn others<'a>(&self, ranked: &'a [(u32, f32)], step: &Step<'_>) -> &'a [(u32, f32)] {
        let (changed, dropped) = self.touched(step);
        let touched = distinct(&[changed, dropped].concat());
        let is_other = |(token, _): &(u32, f32)| touched.binary_search(token).is_err();
        let first = ranked.iter().position(is_other);
        first.map_or(&[], |first| &ranked[first..])
    }

    /// How many of the tokens that are not touched are needed, and how near to the best.
    fn most(&self, cut: Cut, step: &Step<'_>) -> (usize, Option<f32>) {
        let masked = if self.is_masked(step) { MASKED } else { 0 };
        match cut {
            Cut::Greedy | Cut::Draw | Cut::Filters => (1 + masked, None),
            Cut::TopK => (self.options.top_k.saturating_add(SPARE + masked), None),
            Cut::MinP => (MIN_P_TOKENS, self.within(step)),
        }
    }

    /// No token that is not listed has a higher logit than this, after the temperature. `others`
    /// are the listed ones that are not touched: the last of them is the best that is known of
    /// the rest, unless there are fewer than were requested.
    fn max_unseen(&self, others: &[(u32, f32)], step: &Step<'_>) -> f32 {
        let [(_, best), ..] = *others else { return f32::INFINITY };
        let last = others.last().map_or(best, |&(_, logit)| logit);
        let most = match self.within(step) {
            Some(within) if others.len() < MIN_P_TOKENS => best - within,
            _ => last,
        };
        most / self.divisor()
    }

    /// What lies farther than this below the best logit has no chance by `min_p`, with some to
    /// spare. None where that is no number, or the best tokens may not be allowed.
    #[expect(clippy::cast_possible_truncation, reason = "an infinity is refused")]
    fn within(&self, step: &Step<'_>) -> Option<f32> {
        let tempered = 2.0 * MARGIN - libm::log(f64::from(self.options.min_p));
        let within = (f64::from(self.divisor()) * tempered) as f32;
        (within.is_finite() && !self.is_masked(step)).then_some(within)
    }

    /// How the steps begin that look at all tokens; none where they need all logits.
    fn cut(&self) -> Option<Cut> {
        match self.steps.get(self.ahead) {
            None if self.is_greedy() => Some(Cut::Greedy),
            None => Some(Cut::Draw),
            Some(SamplingStep::TopK) => Some(Cut::TopK),
            Some(SamplingStep::MinP) => Some(Cut::MinP),
            Some(_) => {
                let are_filters = self.steps[self.ahead..].iter().all(|&taken| {
                    use SamplingStep as Taken;
                    matches!(taken, Taken::TopK | Taken::TopP | Taken::MinP) || needs_sum(taken)
                });
                are_filters.then_some(Cut::Filters)
            }
        }
    }

    /// The scores of tokens that are not touched, of their logits.
    fn scores(&self, step: &Step<'_>) -> NoisyScores {
        NoisyScores { noise: step.draw.noise(), temperature: self.divisor() }
    }

    /// The temperature before the cut.
    fn divisor(&self) -> f32 {
        let is_tempered = self.steps[..self.ahead].contains(&SamplingStep::Temperature);
        if is_tempered { self.options.temperature } else { 1.0 }
    }

    /// The ids that steps before the cut change, and those that they drop. In any order.
    fn touched(&self, step: &Step<'_>) -> (Vec<u32>, Vec<u32>) {
        let (mut changed, mut dropped) = (vec![], vec![]);
        for &taken in &self.steps[..self.ahead] {
            changed.extend(ids(&self.changes(taken, step)));
            dropped.extend(self.bans(taken, step));
        }
        (changed, dropped)
    }

    /// The list of tokens that are allowed before the cut.
    fn allowed_list(&self) -> Option<&[u32]> {
        let is_ahead = self.steps[..self.ahead].contains(&SamplingStep::Tokens);
        self.options.allowed_tokens.as_deref().filter(|_| is_ahead)
    }

    /// Whether there are tokens that are not allowed before the cut.
    fn is_masked(&self, step: &Step<'_>) -> bool {
        step.allowed.is_some() || self.allowed_list().is_some()
    }

    /// The tokens that are allowed before the cut, if they are few: of a mask alone at most `most`.
    fn few_allowed(&self, step: &Step<'_>, most: usize) -> Option<Vec<u32>> {
        let few: Vec<u32> = match (self.allowed_list(), step.allowed) {
            (Some(list), mask) => {
                let is_allowed = |token: &&u32| mask.is_none_or(|mask| mask.contains(**token));
                list.iter().filter(is_allowed).take(FEW + 1).copied().collect()
            }
            (None, Some(mask)) if mask.count() > most => return None,
            (None, Some(mask)) => mask.iter().collect(),
            (None, None) => return None,
        };
        (few.len() <= FEW).then_some(few)
    }
}

/// Whether a filter compares weights with the sum of all.
fn needs_sum(taken: SamplingStep) -> bool {
    use SamplingStep as Taken;
    matches!(taken, Taken::TypicalP | Taken::EpsilonCutoff | Taken::EtaCutoff)
}
