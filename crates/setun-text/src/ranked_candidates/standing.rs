//! Bounds of a token's place and share among all tokens, of which few are listed.
//!
//! Filters drop tokens and change no logit. So the weight before a token and the whole weight can only fall.
//! All filters but `typical_p` leave the best tokens up to some place: all before a token that stays do too.

use super::{Ranked, RankedCandidates};

/// More than the sums of any vocabulary's weights differ in two orders.
const SUMS: f64 = 1e-6;

/// A token among others, as far as their weights are known. Those are relative to the best one's.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Standing {
    weight: f64,          // its own
    place: Option<usize>, // at most as many come before it, where it is known
    before: [f64; 2],     // bounds of the weight of those, unless `typical_p` drops some
    from: f64,            // at least the weight of itself and those behind it
    total: f64,           // at most the weight of all
}

impl RankedCandidates {
    /// Where one of these tokens stands among all, of which the others have logits of at most `least`.
    /// `total` bounds the weight of all from above, relative to the best. Drops what is listed twice.
    pub(crate) fn standing(&mut self, token: Ranked, least: f32, total: f64) -> Standing {
        self.tokens.sort_unstable();
        self.tokens.dedup();
        let (tokens, weights) = self.weighted();
        let place = tokens.partition_point(|&ranked| ranked < token);
        let (before, from) = weights.split_at(place);
        let [before, from] = [before, from].map(|weights| weights.iter().sum::<f64>());
        let is_placed = token.logit() > least;
        Standing {
            weight: weights.get(place).copied().unwrap_or_default(),
            place: is_placed.then_some(place),
            before: [before, if is_placed { before } else { f64::INFINITY }],
            from,
            total: total * (1.0 + SUMS),
        }
    }
}

impl Standing {
    /// Whether [`keep_top_k`](RankedCandidates::keep_top_k) leaves the token.
    pub(crate) fn stays_by_top_k(&mut self, count: usize) -> bool {
        self.keeps_before(self.place.is_some_and(|place| place < count))
    }

    /// Whether [`keep_top_p`](RankedCandidates::keep_top_p) leaves the token.
    pub(crate) fn stays_by_top_p(&mut self, share: f64) -> bool {
        self.keeps_before(self.is_within(share))
    }

    /// Whether [`keep_min_p`](RankedCandidates::keep_min_p) leaves the token.
    pub(crate) fn stays_by_min_p(&mut self, share: f64) -> bool {
        self.keeps_before(self.weight >= share * (1.0 + SUMS))
    }

    /// Whether a filter leaves the token that keeps those of at least this probability.
    pub(crate) fn stays_by_probability(&mut self, least: f64) -> bool {
        self.keeps_before(self.weight >= least * self.total)
    }

    /// Whether `typical_p` leaves the token, whatever the entropy is.
    ///
    /// Tokens stay as long as those that come nearer to the entropy have less than `share` of the
    /// weight. Those that come nearer are all before the token where its information is above the
    /// entropy, and all behind it where it is below.
    pub(crate) fn stays_by_typical_p(&mut self, share: f64) -> bool {
        let up_to = self.before[0] + self.weight;
        let stays = self.is_within(share) && self.is_beyond(share, up_to);
        self.from = self.weight;
        stays
    }

    /// Whether tokens before it have less than this share of the weight. The quotient of `before` and
    /// `before + from` rises with `before`, so it is enough to know the most that this may be.
    fn is_within(&self, share: f64) -> bool {
        let [_, before] = self.before;
        before * (1.0 + SUMS) < share * (before + self.from) * (1.0 - SUMS)
            || self.is_beyond(share, self.weight)
    }

    /// Whether all tokens but some that have this weight have less than a share of the whole.
    fn is_beyond(&self, share: f64, weight: f64) -> bool {
        weight * (1.0 - SUMS) > (1.0 - share + SUMS) * self.total
    }

    /// For filters that never drop the best token. It may be that none behind the token is left.
    fn keeps_before(&mut self, stays: bool) -> bool {
        self.from = self.weight;
        stays || self.place == Some(0)
    }
}
