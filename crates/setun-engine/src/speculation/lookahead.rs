//! Speculation of an engine's sequence: prompt lookup, or the length of a draft model's proposal.

use super::{DraftCost, DraftLength, PromptLookup};

/// Guesses what comes next in one sequence, and how much of it is worth a try.
#[derive(Clone, Debug)]
pub(crate) struct Lookahead {
    most: usize,
    lookup: PromptLookup,
    /// By the [class](CLASSES) of what the text repeats.
    from_text: [DraftLength; CLASSES.len()],
    by_draft: DraftLength,
    last: Guesser,
}

/// Who guessed last.
#[derive(Clone, Copy, Debug)]
enum Guesser {
    Text { class: usize },
    Draft,
}

/// Time that a proposed token adds to a step of the target, in parts of a step over one token: as
/// of a model of two thousand million weights on two cores.
const ROW_COST: f64 = 0.2;

/// Lengths of the runs that are looked for.
const RUNS: (usize, usize) = (2, 8);

/// How many tokens of the text repeat earlier ones at least, and what part of the guesses after so
/// many is taken to be right before there were any: who has said much again goes on more likely.
const CLASSES: [(usize, f64); 4] = [(0, 0.5), (4, 0.6), (8, 0.75), (16, 0.9)];

impl Lookahead {
    /// At most this many tokens at once.
    pub(crate) fn new(most: usize) -> Self {
        Self {
            most,
            lookup: PromptLookup::new(RUNS.0, RUNS.1),
            from_text: CLASSES.map(|(_, rate)| DraftLength::expecting(rate)),
            by_draft: DraftLength::default(),
            last: Guesser::Draft,
        }
    }

    /// How many tokens a draft is to guess, at most this many, where one takes that part of a step.
    pub(crate) fn count(&mut self, most: usize, proposal: f64) -> usize {
        self.last = Guesser::Draft;
        self.by_draft.next(self.most.min(most), cost(proposal))
    }

    /// Up to `most` tokens that may follow a text, which has only grown since the last call.
    pub(crate) fn guess(&mut self, text: &[u32], most: usize, vocabulary: usize) -> Vec<u32> {
        let Some(found) = self.lookup.find(text) else { return vec![] };
        let shared = found.shared(text, CLASSES[CLASSES.len() - 1].0);
        let class = CLASSES.partition_point(|(least, _)| *least <= shared) - 1;
        self.last = Guesser::Text { class };
        let count = self.from_text[class].next(self.most.min(most), cost(0.0));
        let mut draft = found.follow(text, count);
        let known = draft.iter().take_while(|&&token| (token as usize) < vocabulary).count();
        draft.truncate(known);
        draft
    }

    /// Records how many tokens were guessed, and how many of them were right.
    pub(crate) fn record(&mut self, draft: usize, right: usize) {
        let length = match self.last {
            Guesser::Text { class } => &mut self.from_text[class],
            Guesser::Draft => &mut self.by_draft,
        };
        length.record(draft, right);
    }
}

fn cost(proposal: f64) -> DraftCost {
    DraftCost { row: ROW_COST, proposal }
}

#[cfg(test)]
mod tests {
    use super::*;

    const VOCABULARY: usize = 1000;

    /// Guesses `text` from each place on, as it goes on; how many were guessed and right.
    fn played(text: &[u32], known: usize) -> (usize, usize, usize) {
        let mut lookahead = Lookahead::new(12);
        let (mut len, mut draft_len, mut rights, mut steps) = (known, 0, 0, 0);
        while len < text.len() {
            let draft = lookahead.guess(&text[..len], text.len() - len - 1, VOCABULARY);
            let right = draft.iter().zip(&text[len..]).take_while(|(a, b)| a == b).count();
            lookahead.record(draft.len(), right);
            (draft_len, rights, steps) = (draft_len + draft.len(), rights + right, steps + 1);
            len += right + 1;
        }
        (draft_len, rights, steps)
    }

    #[test]
    fn what_repeats_much_is_guessed_far_at_once() {
        let text: Vec<u32> = (0..40).cycle().take(160).collect();
        let (draft, right, steps) = played(&text, 80);
        assert_eq!(draft, right);
        assert!(steps <= 10, "{steps} steps for 80 tokens");
    }

    #[test]
    fn short_repeats_in_vain_do_not_stop_long_ones() {
        // A pair comes again and again, and each time something else follows; then all comes again.
        let mut text: Vec<u32> = (100..160).flat_map(|other| [1, 2, other]).collect();
        let (draft, right, _) = played(&text, 6);
        assert!(draft < 10 && right == 0, "{right} of {draft}");
        text.extend_from_within(..);
        let (_, right, steps) = played(&text, 6);
        assert!(right > 120 && steps < 174 + 60, "{right} right in {steps} steps");
    }

    #[test]
    fn a_draft_has_an_experience_of_its_own() {
        let mut lookahead = Lookahead::new(12);
        let first = lookahead.count(12, 0.1);
        let text: Vec<u32> = (0..40).cycle().take(160).collect();
        for len in 80..120 {
            let draft = lookahead.guess(&text[..len], 12, VOCABULARY).len();
            lookahead.record(draft, draft);
        }
        assert_eq!(lookahead.count(12, 0.1), first);
        lookahead.record(first, first);
        assert!(lookahead.count(12, 0.1) >= first);
        for _ in 0..20 {
            lookahead.count(12, 0.1);
            lookahead.record(1, 0);
        }
        assert_eq!(lookahead.count(12, 0.1), 0);
        assert_eq!(lookahead.guess(&text, 12, VOCABULARY).len(), 12);
    }
}
