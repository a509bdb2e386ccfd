//! Candidates of a beam search, best first.

use std::cmp::Ordering;

/// A token after a beam.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Candidate {
    /// The beam, by its place in its group.
    pub(super) beam: usize,
    pub(super) token: u32,
    /// The sum of the log-probabilities up to this token.
    pub(super) sum: f64,
}

impl Candidate {
    /// The higher sum first, then the earlier beam, then the lower token.
    fn order(&self, other: &Self) -> Ordering {
        let sums = other.sum.total_cmp(&self.sum);
        sums.then(self.beam.cmp(&other.beam)).then(self.token.cmp(&other.token))
    }
}

/// The best candidates of a group.
pub(super) struct Candidates {
    best: Vec<Candidate>, // in order
    most: usize,
}

impl Candidates {
    /// Up to `most` of them, which is 1 or more.
    pub(super) fn new(most: usize) -> Self {
        Self { best: vec![], most }
    }

    /// The scores of the tokens that may follow a beam.
    pub(super) fn add(&mut self, beam: usize, sum: f64, scores: &[(u32, f32)]) {
        for &(token, score) in scores {
            // So that a 0 has one sign.
            let new = Candidate { beam, token, sum: sum + f64::from(score) + 0.0 };
            let comes_first = |old: &Candidate| old.order(&new).is_lt();
            let is_full = self.best.len() == self.most;
            // Most of a vocabulary ends here.
            if is_full && self.best.last().is_some_and(comes_first) {
                continue;
            }
            self.best.truncate(self.most - 1);
            self.best.insert(self.best.partition_point(comes_first), new);
        }
    }

    /// The best, in order.
    pub(super) fn into_ranked(self) -> Vec<Candidate> {
        self.best
    }
}
