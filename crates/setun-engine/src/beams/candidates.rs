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
    best: Vec<Candidate>, // in no order until they are requested
    most: usize,
}

impl Candidates {
    /// Up to `most` of them, which is 1 or more.
    pub(super) fn new(most: usize) -> Self {
        Self { best: vec![], most }
    }

    /// The scores of the tokens that may follow a beam.
    pub(super) fn add(&mut self, beam: usize, sum: f64, scores: &[(u32, f32)]) {
        let candidate = |&(token, score): &(u32, f32)| {
            // So that a 0 has one sign.
            Candidate { beam, token, sum: sum + f64::from(score) + 0.0 }
        };
        self.best.extend(scores.iter().map(candidate));
        if self.best.len() > self.most {
            self.best.select_nth_unstable_by(self.most - 1, Candidate::order);
            self.best.truncate(self.most);
        }
    }

    /// The best, in order.
    pub(super) fn into_ranked(mut self) -> Vec<Candidate> {
        self.best.sort_unstable_by(Candidate::order);
        self.best
    }
}
