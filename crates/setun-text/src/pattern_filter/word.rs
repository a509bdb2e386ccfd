//! Words without regular expressions.

use super::letter::{Letter, is_of_a_word};

/// What to look for.
#[derive(Debug)]
pub(super) struct Word {
    letters: Vec<Letter>,
    is_whole: bool,
    ignore_case: bool,
}

/// What came of a character.
pub(super) enum Match {
    /// This many letters are there.
    Open(usize),
    /// It is there, and ends behind the character.
    Complete,
    /// It was there before the character.
    Before,
    /// It is not there.
    None,
}

impl Word {
    pub(super) fn new(text: &str, is_whole: bool, ignore_case: bool) -> Self {
        Self { letters: text.chars().map(Letter::new).collect(), is_whole, ignore_case }
    }

    /// Whether it may begin after this character.
    pub(super) fn may_begin(&self, before: Option<char>) -> bool {
        !(self.is_whole && before.is_some_and(is_of_a_word))
    }

    /// Takes the next character where this many letters are there.
    pub(super) fn take(&self, known: usize, next: &Letter) -> Match {
        match self.letters.get(known) {
            Some(letter) if !letter.is(next, self.ignore_case) => Match::None,
            Some(_) if known + 1 == self.letters.len() && !self.is_whole => Match::Complete,
            Some(_) => Match::Open(known + 1),
            None if is_of_a_word(next.character) => Match::None,
            None => Match::Before,
        }
    }

    /// Whether this many letters are all.
    pub(super) fn is_complete(&self, known: usize) -> bool {
        known == self.letters.len()
    }
}
