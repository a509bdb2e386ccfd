//! The number of tokens to propose.

/// The part of what is known of acceptance that a token more or less makes.
const WEIGHT: f64 = 0.15;

/// What is taken for the part of accepted tokens before there were any.
const FIRST_RATE: f64 = 0.5;

/// Where proposals do not pay, a token is tried after this many: a text may begin to repeat. Each
/// one in vain doubles the pause, up to the longest.
const PAUSE: usize = 8;
const LONGEST_PAUSE: usize = 32;

/// What rows beyond the first cost in a step of the target, in parts of the step.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct DraftCost {
    /// To verify a token.
    pub(super) row: f64,
    /// To propose one.
    pub(super) proposal: f64,
}

/// How many tokens to propose for a sequence, from what became of those before.
///
/// If each token is accepted with probability `a`, a step of `k` proposed tokens gives
/// `1 + a + … + a^k` and costs `1 + k · c` steps. The best `k` is taken. Where it is 0 a token is
/// tried now and then, and further ones as long as they are accepted. It depends on no clock, so
/// neither does the text.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct DraftLength {
    rate: f64,
    wait: usize, // tokens before one is tried
    pause: usize,
}

impl Default for DraftLength {
    fn default() -> Self {
        Self { rate: FIRST_RATE, wait: 0, pause: PAUSE }
    }
}

impl DraftLength {
    /// One that takes such a part of tokens to be accepted before there were any.
    pub(super) fn expecting(rate: f64) -> Self {
        Self { rate, ..Self::default() }
    }

    /// Tokens to propose next, at most this many.
    pub(super) fn next(&mut self, most: usize, cost: DraftCost) -> usize {
        let best = best(self.rate, most, cost.row + cost.proposal);
        if best == 0 && self.wait > 0 {
            self.wait -= 1;
            return 0;
        }
        best.max(1).min(most)
    }

    /// Records how many tokens were proposed, and how many accepted: those after a rejected one
    /// have not been judged.
    pub(super) fn record(&mut self, proposed: usize, accepted: usize) {
        for _ in 0..accepted {
            self.rate += (1.0 - self.rate) * WEIGHT;
        }
        if accepted < proposed {
            self.rate -= self.rate * WEIGHT;
        }
        if accepted > 0 {
            (self.wait, self.pause) = (0, PAUSE);
        } else if proposed > 0 {
            self.wait = self.pause;
            self.pause = (2 * self.pause).min(LONGEST_PAUSE);
        }
    }
}

/// The number of proposed tokens that gives most tokens for the cost, the least of equals.
fn best(rate: f64, most: usize, cost: f64) -> usize {
    let (mut best, mut best_yield) = (0, 1.0);
    let (mut tokens, mut power) = (1.0, 1.0);
    for count in 1..=most {
        power *= rate;
        tokens += power;
        let found = tokens / (1.0 + cost * to_f64(count));
        if found > best_yield {
            (best, best_yield) = (count, found);
        }
    }
    best
}

#[expect(clippy::cast_precision_loss, reason = "a count of tokens")]
fn to_f64(count: usize) -> f64 {
    count as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    const CHEAP: DraftCost = DraftCost { row: 0.1, proposal: 0.0 };

    /// Proposes for some tokens, all or none of which are accepted; returns when.
    fn proposed(length: &mut DraftLength, steps: usize, are_accepted: bool) -> Vec<usize> {
        let propose = |_| {
            let proposed = length.next(16, CHEAP);
            length.record(proposed, if are_accepted { proposed } else { 0 });
            proposed
        };
        (0..steps).map(propose).collect()
    }

    #[test]
    fn good_drafts_grow_longer_and_bad_ones_pause() {
        let mut length = DraftLength::default();
        let good = proposed(&mut length, 40, true);
        assert!((1..16).contains(&good[0]) && good[10..] == [16; 30], "{good:?}");
        let bad = proposed(&mut length, 100, false);
        assert!(bad[..20].is_sorted_by(|a, b| a >= b), "{bad:?}");
        assert!(
            (1..5).contains(&bad[20..].iter().sum::<usize>()),
            "one token now and then: {bad:?}"
        );
        let good = proposed(&mut length, LONGEST_PAUSE + 40, true);
        assert_eq!(good[LONGEST_PAUSE + 10..], [16; 30], "it comes back: {good:?}");
    }

    #[test]
    fn a_pause_ends_with_a_proposal() {
        let mut length = DraftLength::default();
        let dear = DraftCost { row: 0.6, proposal: 0.0 };
        proposed(&mut length, 200, false);
        // There is nothing to propose, so the length is asked again until there is.
        let mut asked = || (0..LONGEST_PAUSE).map(|_| length.next(16, dear)).collect::<Vec<_>>();
        asked();
        assert_eq!(asked(), [1; LONGEST_PAUSE]);
        length.record(1, 1);
        assert_eq!(length.next(16, dear), 1, "as it was accepted");
        length.record(1, 0);
        assert_eq!(length.next(16, dear), 0);
        assert_eq!(DraftLength::default().next(0, CHEAP), 0);
    }

    #[test]
    fn the_best_number_is_that_of_the_formula() {
        // 1 + a = 1.5 for 1.2 steps, 1.75 for 1.4, 1.875 for 1.6.
        assert_eq!(best(0.5, 8, 0.2), 1);
        // 1.9 / 1.1, 2.71 / 1.2, 3.439 / 1.3, 4.0951 / 1.4, 4.68559 / 1.5, 5.217 / 1.6, 5.695 / 1.7
        assert_eq!(best(0.9, 8, 0.1), 8);
        assert_eq!(best(0.9, 3, 0.1), 3);
        assert_eq!(best(0.1, 8, 0.2), 0, "1.1 tokens for 1.2 steps");
        assert_eq!(best(0.9, 0, 0.1), 0);
    }

    #[test]
    fn tokens_without_logprobs_do_not_count() {
        let record = |proposed, accepted| {
            let mut length = DraftLength::default();
            length.record(proposed, accepted);
            length.rate
        };
        assert_eq!(record(8, 1), record(2, 1), "one accepted, one rejected, six unknown");
        assert_eq!(record(0, 0), FIRST_RATE);
        assert!(record(1, 1) > FIRST_RATE && record(1, 0) < FIRST_RATE);
    }
}
