//! Guesses of an engine's sequence from its own text.

use setun_model::SequenceId;

use super::{DraftCost, DraftLength, PromptLookup, SpeculationOptions};

/// Guesses what comes next in one sequence, and how much of it is worth a try.
#[derive(Clone, Debug)]
pub(crate) struct Lookahead {
    most: usize,
    lookup: PromptLookup,
    length: DraftLength,
}

/// Each sequence has a lookup of its own, in which it has this name.
const SEQUENCE: SequenceId = SequenceId(0);

impl Lookahead {
    /// At most so many tokens at once.
    pub(crate) fn new(most: usize) -> Self {
        Self { most, lookup: PromptLookup::default(), length: DraftLength::default() }
    }

    /// How many tokens to guess, at most so many, where guessing one takes that part of a step.
    pub(crate) fn count(&mut self, most: usize, proposal: f64) -> usize {
        let cost = DraftCost { row: SpeculationOptions::default().row_cost, proposal };
        self.length.next(self.most.min(most), cost)
    }

    /// Up to `most` tokens that may follow a text, which has only grown since the last call.
    pub(crate) fn guess(&mut self, text: &[u32], most: usize, vocabulary: usize) -> Vec<u32> {
        let count = self.count(most, 0.0);
        let mut guessed = self.lookup.lookup(SEQUENCE, text, count);
        let known = guessed.iter().take_while(|&&token| (token as usize) < vocabulary).count();
        guessed.truncate(known);
        guessed
    }

    /// Of so many guessed tokens so many were right.
    pub(crate) fn note(&mut self, guessed: usize, right: usize) {
        self.length.note(guessed, right);
    }
}
