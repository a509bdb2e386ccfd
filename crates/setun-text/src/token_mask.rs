//! Which tokens may come next.

use std::iter;

/// A set of tokens: one bit for each of a vocabulary.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TokenMask {
    words: Vec<u32>, // [ceil(tokens / 32)], the lowest bit of a word first
    tokens: usize,
}

impl TokenMask {
    /// No token of a vocabulary of this size.
    #[must_use]
    pub fn none(tokens: usize) -> Self {
        Self { words: vec![0; tokens.div_ceil(32)], tokens }
    }

    /// Every token.
    #[must_use]
    pub fn all(tokens: usize) -> Self {
        let mut mask = Self { words: vec![u32::MAX; tokens.div_ceil(32)], tokens };
        if let (Some(last), used @ 1..) = (mask.words.last_mut(), tokens % 32) {
            *last = (1 << used) - 1;
        }
        mask
    }

    /// From words of 32 tokens, the lowest bit first. Bits beyond the vocabulary are dropped,
    /// and tokens beyond the words are not in the set.
    #[must_use]
    pub fn from_words(words: &[u32], tokens: usize) -> Self {
        let mut mask = Self::all(tokens);
        for (index, word) in mask.words.iter_mut().enumerate() {
            *word &= words.get(index).copied().unwrap_or(0);
        }
        mask
    }

    /// The words of 32 tokens that [`Self::from_words`] makes it of.
    #[must_use]
    pub fn words(&self) -> &[u32] {
        &self.words
    }

    /// Tokens of the vocabulary.
    #[must_use]
    pub fn vocabulary(&self) -> usize {
        self.tokens
    }

    /// Whether a token is in the set. One beyond the vocabulary is not.
    #[must_use]
    pub fn contains(&self, token: u32) -> bool {
        let word = self.words.get(token as usize / 32);
        word.is_some_and(|word| word >> (token % 32) & 1 == 1)
    }

    /// Puts a token in. One beyond the vocabulary is left out.
    pub fn insert(&mut self, token: u32) {
        if (token as usize) < self.tokens {
            self.words[token as usize / 32] |= 1 << (token % 32);
        }
    }

    /// Takes a token out.
    pub fn remove(&mut self, token: u32) {
        if let Some(word) = self.words.get_mut(token as usize / 32) {
            *word &= !(1 << (token % 32));
        }
    }

    /// Leaves only what is in the other set, too.
    pub fn intersect(&mut self, other: &Self) {
        for (index, word) in self.words.iter_mut().enumerate() {
            *word &= other.words.get(index).copied().unwrap_or(0);
        }
    }

    /// Whether no token is left.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.words.iter().all(|&word| word == 0)
    }

    /// Number of tokens in the set.
    #[must_use]
    pub fn count(&self) -> usize {
        self.words.iter().map(|word| word.count_ones() as usize).sum()
    }

    /// The tokens, ascending.
    pub fn iter(&self) -> impl Iterator<Item = u32> {
        let left = |word: u32| (word != 0).then_some(word);
        (0_u32..).step_by(32).zip(&self.words).flat_map(move |(first, &word)| {
            let words = iter::successors(left(word), move |word| left(word & (word - 1)));
            words.map(move |word| first + word.trailing_zeros())
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn knows_its_vocabulary_at_every_edge() {
        for tokens in [1, 31, 32, 33, 64, 70] {
            let all = TokenMask::all(tokens);
            let last = u32::try_from(tokens).expect("few");
            assert_eq!((all.count(), all.vocabulary()), (tokens, tokens));
            assert!(all.contains(last - 1) && !all.contains(last), "{tokens}");
            assert_eq!(all.iter().collect::<Vec<_>>(), (0..last).collect::<Vec<_>>());
            assert_eq!(TokenMask::from_words(&[u32::MAX; 4], tokens), all);
            assert_eq!(TokenMask::from_words(all.words(), tokens), all);
            let mut none = TokenMask::none(tokens);
            none.insert(last);
            assert!(none.is_empty());
            none.insert(last - 1);
            assert_eq!(none.iter().collect::<Vec<_>>(), [last - 1]);
            none.remove(last - 1);
            assert!(none.is_empty());
        }
    }

    #[test]
    fn its_tokens_are_those_that_it_contains() {
        let mut state = 1_u32;
        let mut word = |density: u32| {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            [0, state & state.rotate_left(9), state, u32::MAX][density as usize % 4]
        };
        for tokens in [5, 32, 96, 250] {
            for first in 0..4 {
                let words: Vec<u32> = (first..first + 8).map(&mut word).collect();
                let mask = TokenMask::from_words(&words, tokens);
                let last = u32::try_from(tokens).expect("few");
                let contained: Vec<u32> = (0..last).filter(|&id| mask.contains(id)).collect();
                assert_eq!(mask.iter().collect::<Vec<_>>(), contained, "{tokens}, {words:x?}");
                assert_eq!(mask.count(), contained.len());
            }
        }
    }

    #[test]
    fn an_intersection_has_what_both_have() {
        let mut mask = TokenMask::from_words(&[0b1011, 1], 40);
        mask.intersect(&TokenMask::from_words(&[0b0110], 40));
        assert_eq!(mask.iter().collect::<Vec<_>>(), [1]);
    }
}
