//! Places where a text spells one of several tokens.

use std::iter;

/// Spellings of tokens, each of two characters or more.
pub(crate) struct Spellings<'a> {
    tokens: Vec<&'a str>, // sorted, and none begins with another
    firsts: Vec<char>,    // their first characters, sorted
}

impl<'a> Spellings<'a> {
    /// Of these tokens. One of a single character is left out: it cannot be divided.
    pub(crate) fn new(tokens: impl IntoIterator<Item = &'a str>) -> Self {
        let tokens = tokens.into_iter().filter(|token| token.chars().nth(1).is_some());
        let mut tokens: Vec<_> = tokens.collect();
        tokens.sort_unstable();
        tokens.dedup_by(|longer, token| longer.starts_with(*token));
        let mut firsts: Vec<_> = tokens.iter().filter_map(|token| token.chars().next()).collect();
        firsts.dedup();
        Self { tokens, firsts }
    }

    /// Whether a text begins with a token.
    pub(crate) fn is_at_start_of(&self, text: &str) -> bool {
        // What is between a token and a text that begins with it begins with that token as well.
        let behind = self.tokens.partition_point(|&token| token <= text);
        let before = behind.checked_sub(1).map(|index| self.tokens[index]);
        before.is_some_and(|token| text.starts_with(token))
    }

    /// Whether a text is the beginning of a token.
    fn has_beginning(&self, text: &str) -> bool {
        let first = self.tokens.partition_point(|&token| token < text);
        !text.is_empty() && self.tokens.get(first).is_some_and(|token| token.starts_with(text))
    }

    /// Where the first character of each token in a text ends; no part between them spells a token.
    pub(crate) fn cuts<'t>(&'t self, text: &'t str) -> impl Iterator<Item = usize> + 't {
        self.firsts_in(text)
            .filter(move |&(at, _)| self.is_at_start_of(&text[at..]))
            .map(|(_, end)| end)
    }

    /// The same, also of what is a token's beginning at the end of the text, before white space.
    pub(crate) fn open_cuts<'t>(&'t self, text: &'t str) -> impl Iterator<Item = usize> + 't {
        let end = text.trim_end().len();
        let is_open = move |at| text.get(at..end).is_some_and(|rest| self.has_beginning(rest));
        let is_cut =
            move |&(at, _): &(usize, usize)| self.is_at_start_of(&text[at..]) || is_open(at);
        self.firsts_in(text).filter(is_cut).map(|(_, end)| end)
    }

    /// Starts and ends of the characters that a token begins with.
    fn firsts_in<'t>(&'t self, text: &'t str) -> impl Iterator<Item = (usize, usize)> + 't {
        let is_first = move |character: &char| self.firsts.binary_search(character).is_ok();
        let firsts = text.char_indices().filter(move |(_, character)| is_first(character));
        firsts.map(|(at, character)| (at, at + character.len_utf8()))
    }
}

/// The parts of a text between cuts.
pub(crate) fn parts(text: &str, cuts: impl Iterator<Item = usize>) -> impl Iterator<Item = &str> {
    let mut start = 0;
    cuts.chain(iter::once(text.len()))
        .map(move |end| &text[std::mem::replace(&mut start, end)..end])
}

#[cfg(test)]
mod tests {
    use super::*;

    const TOKENS: [&str; 7] = ["</s>", "<|a|>", "<|a|>b", "<|b|>", "aa", "é|", "x"];

    #[test]
    fn tokens_are_found_as_by_comparing_each() {
        let spellings = Spellings::new(TOKENS);
        let letters = ["<", "|", "a", "b", ">", "/s", "é", "x", " "];
        let count = letters.len();
        for number in 0..count.pow(5) {
            let digits = (0..5).map(|digit| number / count.pow(digit) % count);
            let text: String = digits.map(|digit| letters[digit]).collect();
            let of_two = TOKENS.iter().filter(|token| token.chars().count() > 1);
            let begins = |rest: &str| of_two.clone().any(|token| rest.starts_with(token));
            let is_open = |rest: &str| {
                let rest = rest.trim_end();
                !rest.is_empty() && of_two.clone().any(|token| token.starts_with(rest))
            };
            let ends = |is_cut: &dyn Fn(&str) -> bool| -> Vec<usize> {
                let cuts = text.char_indices().filter(|(at, _)| is_cut(&text[*at..]));
                cuts.map(|(at, character)| at + character.len_utf8()).collect()
            };
            assert_eq!(spellings.cuts(&text).collect::<Vec<_>>(), ends(&begins), "{text}");
            let open = ends(&|rest| begins(rest) || is_open(rest));
            assert_eq!(spellings.open_cuts(&text).collect::<Vec<_>>(), open, "{text}");
        }
    }

    #[test]
    fn parts_spell_no_token_and_join_to_the_text() {
        let spellings = Spellings::new(TOKENS);
        for (text, expected) in [
            ("", vec![""]),
            ("hello", vec!["hello"]),
            ("</s>", vec!["<", "/s>"]),
            ("aaaab", vec!["a", "a", "a", "ab"]),
            ("é|<|a|>b", vec!["é", "|<", "|a|>b"]),
        ] {
            let found: Vec<_> = parts(text, spellings.cuts(text)).collect();
            assert_eq!(found, expected);
        }
    }
}
