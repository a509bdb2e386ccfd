//! Words without regular expressions.

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

/// A character, and what it is with and without capitals; at most three characters each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Letter {
    character: char,
    small: [char; 3],
    capital: [char; 3],
}

impl Letter {
    pub(super) fn new(character: char) -> Self {
        let small = three(character.to_lowercase());
        Self { character, small, capital: three(character.to_uppercase()) }
    }

    /// Whether it is the other one; without case, if the capitals or the small letters of both are
    /// the same.
    fn is(&self, other: &Self, ignore_case: bool) -> bool {
        self.character == other.character
            || ignore_case && (self.small == other.small || self.capital == other.capital)
    }
}

/// Whether words go on with it.
fn is_of_a_word(character: char) -> bool {
    character.is_alphanumeric() || character == '_'
}

fn three(mut characters: impl Iterator<Item = char>) -> [char; 3] {
    [(); 3].map(|()| characters.next().unwrap_or_default())
}
