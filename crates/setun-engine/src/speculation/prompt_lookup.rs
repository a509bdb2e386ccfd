//! Prompt lookup: proposals from what followed the same words earlier in the text.

use std::collections::HashMap;

/// Proposes what followed the most recent earlier occurrence of the longest run of tokens that
/// the text ends with and that occurred before. Where that reaches the end of the text it goes
/// on with what it has proposed, so a text that repeats itself is continued for as long as is
/// requested.
///
/// Nothing is ever searched: each run of tokens is noted once, with its place, when the text has
/// gone on.
#[derive(Clone, Debug)]
pub(super) struct PromptLookup {
    shortest: usize,
    longest: usize,
    /// Runs that end before this place are noted.
    indexed: usize,
    /// By length and hash of a run, the place behind its last occurrence.
    places: HashMap<(usize, u64), usize>,
}

impl PromptLookup {
    /// Looks for runs of this many tokens, the longest first; shorter ones are found more often and
    /// tell less. Fewer than 1 are taken as 1.
    pub(super) fn new(shortest: usize, longest: usize) -> Self {
        let shortest = shortest.max(1);
        Self { shortest, longest: longest.max(shortest), indexed: 0, places: HashMap::new() }
    }

    /// What a history repeats, if it ends with a run that occurred before.
    pub(super) fn find(&mut self, history: &[u32]) -> Option<Found> {
        self.record(history);
        let occurrence = |(length, hash)| {
            let place = *self.places.get(&(length, hash))?;
            let run = history.get(place.checked_sub(length)?..place)?;
            history.ends_with(run).then_some(place)
        };
        runs(history, self.shortest, self.longest).filter_map(occurrence).last().map(Found)
    }

    /// Notes the runs that something follows.
    fn record(&mut self, history: &[u32]) {
        for end in self.indexed..history.len() {
            for run in runs(&history[..end], self.shortest, self.longest) {
                self.places.insert(run, end);
            }
        }
        self.indexed = self.indexed.max(history.len());
    }
}

/// The place behind an earlier occurrence of what a history ends with.
#[derive(Clone, Copy, Debug)]
pub(super) struct Found(usize);

impl Found {
    /// How many tokens before both places are the same, counted up to this many.
    pub(super) fn shared(self, history: &[u32], most: usize) -> usize {
        let both = history[..self.0].iter().rev().zip(history.iter().rev());
        both.take(most).take_while(|(earlier, last)| earlier == last).count()
    }

    /// The tokens that follow, and then those that these repeat, this many in all.
    pub(super) fn follow(self, history: &[u32], most: usize) -> Vec<u32> {
        let mut proposed: Vec<u32> = vec![];
        while proposed.len() < most {
            let place = self.0 + proposed.len();
            let token = history.get(place).or_else(|| proposed.get(place - history.len()));
            let Some(&token) = token else { break };
            proposed.push(token);
        }
        proposed
    }
}

/// The runs of tokens at the end of a text, from the shortest, each with a hash.
fn runs(text: &[u32], shortest: usize, longest: usize) -> impl Iterator<Item = (usize, u64)> {
    let hashes = text.iter().rev().take(longest).scan(0_u64, |hash, &token| {
        // An odd multiplier, 2^64 divided by the golden ratio, spreads what is alike.
        *hash = (hash.rotate_left(5) ^ u64::from(token)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        Some(*hash)
    });
    (1..).zip(hashes).skip(shortest - 1)
}

#[cfg(test)]
mod tests;
