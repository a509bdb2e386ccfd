//! The tokens that are left to choose from.

mod nucleus;
mod standing;

use setun_ops::noise::{Noise, precedes};

use crate::TextError;

pub(crate) use standing::Standing;

/// A token and its logit in one integer whose ascending order is the sampler's order: higher
/// logits first, ties by the lower id.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Ranked(u64);

impl Ranked {
    /// `logit` is finite; −0 and 0 count as equal.
    pub(crate) fn new(token: u32, logit: f32) -> Self {
        let bits = (logit + 0.0).to_bits();
        let ascending = if bits >> 31 == 0 { bits | 1 << 31 } else { !bits };
        Self(u64::from(!ascending) << 32 | u64::from(token))
    }

    /// The id.
    #[expect(clippy::cast_possible_truncation, reason = "the low half is the id")]
    pub(crate) fn token(self) -> u32 {
        self.0 as u32
    }

    /// The logit.
    pub(crate) fn logit(self) -> f32 {
        let ascending = !self.rank();
        f32::from_bits(if ascending >> 31 == 1 { ascending & !(1 << 31) } else { !ascending })
    }

    /// Equal for equal logits, smaller for higher ones.
    fn rank(self) -> u32 {
        (self.0 >> 32) as u32
    }
}

/// A list of tokens and, once a step needs them, their weights.
#[derive(Debug)]
pub(crate) struct RankedCandidates {
    tokens: Vec<Ranked>,
    weights: Vec<f64>, // exp(logit - best) of the tokens, which are sorted then; or empty
    is_fresh: bool,    // ascending by id, as no step has looked at all of them
}

impl RankedCandidates {
    /// Of tokens that are ascending by id, or of which not all will be looked at before some are
    /// dropped.
    pub(crate) fn new(tokens: Vec<Ranked>) -> Self {
        Self { tokens, weights: vec![], is_fresh: true }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.tokens.is_empty()
    }

    /// The tokens, in no order that means anything.
    pub(crate) fn tokens(&self) -> &[Ranked] {
        &self.tokens
    }

    /// The best of them.
    pub(crate) fn best(&self) -> Option<Ranked> {
        if self.weights.is_empty() {
            self.tokens.iter().min().copied()
        } else {
            self.tokens.first().copied()
        }
    }

    /// All logits, in one order however the tokens came to be left.
    pub(crate) fn logits(&mut self) -> impl Iterator<Item = f64> + Clone {
        if !self.is_fresh {
            sort(&mut self.tokens);
        }
        self.tokens.iter().map(|token| f64::from(token.logit()))
    }

    /// The tokens and their weights, the best first with weight 1.
    pub(crate) fn weighted(&mut self) -> (&[Ranked], &[f64]) {
        if self.weights.is_empty() {
            sort(&mut self.tokens);
            self.is_fresh = false;
            let best = self.tokens.first().map_or(0.0, |best| f64::from(best.logit()));
            let weight = |token: &Ranked| libm::exp(f64::from(token.logit()) - best);
            self.weights = self.tokens.iter().map(weight).collect();
        }
        (&self.tokens, &self.weights)
    }

    /// The token with the highest score of those before `end`, or of all, and that score; of equal
    /// ones the one with the lowest id.
    pub(crate) fn draw(&self, noise: Noise, end: Option<Ranked>) -> Option<(Ranked, f64)> {
        let mut drawn: Option<(Ranked, f64)> = None;
        // The best one goes first, so few others need a logarithm.
        for ranked in self.best().into_iter().chain(self.tokens.iter().copied()) {
            let (token, logit) = (ranked.token(), ranked.logit());
            let is_left = end.is_none_or(|end| ranked < end);
            if is_left && drawn.is_none_or(|(_, score)| noise.score_bound(token, logit) >= score) {
                let score = noise.score(token, logit);
                let is_old = |&(old, old_score): &(Ranked, f64)| {
                    !precedes((token, score), (old.token(), old_score))
                };
                drawn = drawn.filter(is_old).or(Some((ranked, score)));
            }
        }
        drawn
    }

    /// Leaves the `count` best tokens and all that tie with the last of them.
    ///
    /// Linear in the number of tokens: nothing is sorted.
    pub(crate) fn keep_top_k(&mut self, count: usize) {
        self.is_fresh = false;
        if count == 0 || count >= self.tokens.len() {
            return;
        }
        if self.weights.is_empty() {
            let (_, last, _) = self.tokens.select_nth_unstable(count - 1);
            let last = last.rank();
            self.tokens.retain(|token| token.rank() <= last);
        } else {
            let last = self.tokens[count - 1].rank();
            self.keep_first(self.tokens.partition_point(|token| token.rank() <= last));
        }
    }

    /// Leaves tokens as long as those before them have less than `share` of the whole weight.
    /// The first always stays.
    pub(crate) fn keep_top_p(&mut self, share: f64) {
        let (_, weights) = self.weighted();
        let total: f64 = weights.iter().sum();
        let mut before = 0.0;
        let stays = |weight: &&f64| {
            let stays = before < share * total;
            before += **weight;
            stays
        };
        let count = weights.iter().take_while(stays).count();
        self.keep_first(count.max(1));
    }

    /// Leaves tokens with at least `share` of the best one's weight.
    pub(crate) fn keep_min_p(&mut self, share: f32) {
        if self.weights.is_empty()
            && let Some(best) = self.best()
        {
            // So that fewer are sorted; some that have less may stay.
            let least = min_logit(best.logit(), share);
            self.tokens.retain(|token| f64::from(token.logit()) >= least);
        }
        let (_, weights) = self.weighted();
        let count = weights.partition_point(|&weight| weight >= f64::from(share));
        self.keep_first(count.max(1));
    }

    /// Leaves the `count` best of tokens that are weighted.
    pub(crate) fn keep_first(&mut self, count: usize) {
        self.tokens.truncate(count);
        self.weights.truncate(count);
    }

    /// Leaves the tokens for which `keep` is true.
    pub(crate) fn retain(&mut self, keep: impl FnMut(&Ranked) -> bool) {
        self.tokens.retain(keep);
        self.weights.clear();
    }

    /// Gives the tokens for which `change` is not none another logit.
    pub(crate) fn change(
        &mut self,
        mut change: impl FnMut(Ranked) -> Option<f32>,
    ) -> Result<(), TextError> {
        let mut failed: Option<(u32, f32)> = None;
        for token in &mut self.tokens {
            match change(*token) {
                Some(logit) if logit.is_finite() => *token = Ranked::new(token.token(), logit),
                Some(logit) => {
                    let first = failed.filter(|&(first, _)| first < token.token());
                    failed = first.or(Some((token.token(), logit)));
                }
                None => {}
            }
        }
        self.weights.clear();
        match failed {
            Some((token, found)) => Err(TextError::LogitNotFinite { token, found }),
            None => Ok(()),
        }
    }
}

/// Fewer than this are sorted by comparing them.
const MANY: usize = 4096;

/// Bits of a digit.
const DIGIT: u32 = 11;

/// Sorts. Many that are ascending by id, as a whole row is, are only sorted by rank, digit by
/// digit: each pass keeps the order of those with equal digits.
fn sort(tokens: &mut Vec<Ranked>) {
    if tokens.len() < MANY || !tokens.is_sorted_by_key(|ranked| ranked.token()) {
        tokens.sort_unstable();
        return;
    }
    let mut sorted = tokens.clone();
    for shift in (0..u32::BITS).step_by(DIGIT as usize) {
        let digit = |ranked: Ranked| ((ranked.rank() >> shift) % (1 << DIGIT)) as usize;
        let mut places = [0; 1 << DIGIT];
        for &ranked in &*tokens {
            places[digit(ranked)] += 1;
        }
        let mut next = 0;
        for place in &mut places {
            next += std::mem::replace(place, next);
        }
        for &ranked in &*tokens {
            let place = &mut places[digit(ranked)];
            sorted[*place] = ranked;
            *place += 1;
        }
        std::mem::swap(tokens, &mut sorted);
    }
}

/// Far more than the rounding of a logarithm.
pub(crate) const MARGIN: f64 = 0.01;

/// A logit below this is sure to have less than `share` of the weight of the best one.
pub(crate) fn min_logit(best: f32, share: f32) -> f64 {
    f64::from(best) + libm::log(f64::from(share)) - MARGIN
}

#[cfg(test)]
mod tests;
