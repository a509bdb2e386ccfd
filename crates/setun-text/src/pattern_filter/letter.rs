//! Characters as words compare them.

/// A character, and what it is with and without capitals; at most three characters each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Letter {
    pub(super) character: char,
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
    pub(super) fn is(&self, other: &Self, ignore_case: bool) -> bool {
        self.character == other.character
            || ignore_case && (self.small == other.small || self.capital == other.capital)
    }
}

/// Whether words go on with it.
pub(super) fn is_of_a_word(character: char) -> bool {
    character.is_alphanumeric() || character == '_'
}

fn three(mut characters: impl Iterator<Item = char>) -> [char; 3] {
    [(); 3].map(|()| characters.next().unwrap_or_default())
}
