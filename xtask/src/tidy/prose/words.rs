//! The list of words that are not written, and a search for them.

use std::fmt;

use anyhow::{Context, Result};

/// A word or a sequence of words, and what is written instead.
pub(super) struct Word {
    text: String,
    /// Whether it is the beginning of a longer word.
    is_prefix: bool,
    instead: String,
}

impl fmt::Display for Word {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let star = if self.is_prefix { "*" } else { "" };
        write!(formatter, "`{}{star}`: {}", self.text, self.instead)
    }
}

/// The list of `words.txt`.
pub(super) fn list() -> Result<Vec<Word>> {
    parse(include_str!("words.txt"))
}

/// One word a line, `WORD | INSTEAD`.
pub(super) fn parse(text: &str) -> Result<Vec<Word>> {
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    lines
        .map(|line| {
            let (word, instead) = line.split_once(" | ").with_context(|| line.to_owned())?;
            let text = word.trim_end_matches('*').to_owned();
            Ok(Word { is_prefix: word.ends_with('*'), text, instead: instead.to_owned() })
        })
        .collect()
}

/// The words of `list` in a line. Words with a capital letter are names, which keep their case.
pub(super) fn found<'a>(line: &str, list: &'a [Word]) -> impl Iterator<Item = &'a Word> {
    let lower = line.to_lowercase();
    let line = line.to_owned();
    list.iter().filter(move |word| {
        let is_name = word.text.contains(char::is_uppercase);
        is_in(if is_name { &line } else { &lower }, word)
    })
}

fn is_in(line: &str, word: &Word) -> bool {
    let is_letter = |letter: char| letter.is_alphanumeric() || letter == '_';
    line.match_indices(&word.text).any(|(at, text)| {
        let before = line[..at].chars().next_back();
        let after = line[at + text.len()..].chars().next();
        !before.is_some_and(is_letter) && (word.is_prefix || !after.is_some_and(is_letter))
    })
}
