//! Choosing among tokens by noisy scores, or by bounds of these.
//!
//! A score does not fall as its logit rises: the division in `f32`, the sum in `f64` and their
//! roundings keep the order. So the score of a bound is a bound of the score. Most tokens are
//! decided by a few bits of their noise, without a logarithm.

use setun_ops::{
    noise::precedes,
    top_logits::{NoisyScores, Ranked, TopLogitsRequest},
};

/// The best tokens by score of those shown so far, best first.
struct TopScores<'a> {
    scores: NoisyScores,
    ranked: &'a mut [Ranked],
    count: usize,
    last: Option<(u32, f64)>, // the last of them, once there is no room for more
    limit: f64,               // what the best are known to reach
}

/// Lists the tokens that may be among the best of those that a request does not name, ascending;
/// none if they are too many. `best` is memory to work in.
///
/// The noise is made once: what reaches the limit so far is listed, and what does not reach
/// the last limit is taken out again.
pub(super) fn candidates(
    (scores, limit): (NoisyScores, f64),
    request: &TopLogitsRequest,
    [lower, upper]: [&[f32]; 2],
    best: &mut [Ranked],
    places: &mut [u32],
) -> Option<usize> {
    let (mut best, mut count) = (TopScores { limit, ..TopScores::new(scores, best) }, 0);
    let bounds = lower.iter().zip(upper);
    for (token, (&lower, &upper_bound)) in (0..=u32::MAX).zip(bounds) {
        if !best.may_reach(token, upper_bound)
            || !best.reaches(token, upper_bound)
            || request.touched.binary_search(&token).is_ok()
        {
            continue;
        }
        if count == places.len() {
            count = best.prune(places, upper);
            // Else a few might be taken out again and again.
            if count > places.len() / 2 {
                return None;
            }
        }
        places[count] = token;
        count += 1;
        best.show(token, lower);
    }
    Some(best.prune(&mut places[..count], upper))
}

/// The best of some tokens, as many as there are places.
pub(super) fn best(
    scores: NoisyScores,
    ranked: &mut [Ranked],
    tokens: &mut dyn Iterator<Item = (u32, f32)>,
) {
    let mut best = TopScores::new(scores, ranked);
    for (token, logit) in tokens {
        best.show(token, logit);
    }
}

impl<'a> TopScores<'a> {
    fn new(scores: NoisyScores, ranked: &'a mut [Ranked]) -> Self {
        Self { scores, ranked, count: 0, last: None, limit: f64::NEG_INFINITY }
    }

    /// False only of a token that has a lower score than the last. Cheap.
    #[inline]
    fn may_reach(&self, token: u32, logit: f32) -> bool {
        self.least().is_none_or(|least| self.scores.score_bound(token, logit) >= least)
    }

    /// Whether a token has the score of the last or more.
    fn reaches(&self, token: u32, logit: f32) -> bool {
        self.least().is_none_or(|least| self.scores.score(token, logit) >= least)
    }

    /// What a token must reach, if anything.
    #[inline]
    fn least(&self) -> Option<f64> {
        let least = self.last.map_or(self.limit, |(_, score)| score.max(self.limit));
        (least > f64::NEG_INFINITY).then_some(least)
    }

    /// Takes out tokens whose logits do not reach the last; returns how many are left.
    fn prune(&self, tokens: &mut [u32], logits: &[f32]) -> usize {
        let mut left = 0;
        for index in 0..tokens.len() {
            let token = tokens[index];
            if self.reaches(token, logits[token as usize]) {
                tokens[left] = token;
                left += 1;
            }
        }
        left
    }

    /// Puts a token in its place, if it has one.
    fn show(&mut self, token: u32, logit: f32) {
        if !self.may_reach(token, logit) {
            return;
        }
        let (scores, new) = (self.scores, (token, self.scores.score(token, logit)));
        if self.last.is_some_and(|last| !precedes(new, last)) {
            return;
        }
        let score = |old: &Ranked| (old.token, scores.score(old.token, old.logit));
        let place = self.ranked[..self.count].partition_point(|old| precedes(score(old), new));
        self.count = (self.count + 1).min(self.ranked.len());
        self.ranked[place..self.count].rotate_right(1);
        self.ranked[place] = Ranked { token, logit };
        if self.count == self.ranked.len() {
            self.last = self.ranked.last().map(score);
        }
    }
}
