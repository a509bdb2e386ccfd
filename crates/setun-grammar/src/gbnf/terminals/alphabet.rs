//! Kinds of characters that a grammar tells apart.

use super::super::class::Class;
use super::super::parse::{Alternatives, Element, Rule};

/// The most kinds.
const MAX_KINDS: usize = 256;

/// Kinds of characters, or bytes.
#[derive(Clone, Copy, Default)]
pub(super) struct Set([u64; 4]);

impl Set {
    pub(super) fn insert(&mut self, member: u8) {
        self.0[usize::from(member / 64)] |= 1 << (member % 64);
    }

    pub(super) fn insert_all(&mut self, other: Self) {
        for (words, others) in self.0.iter_mut().zip(other.0) {
            *words |= others;
        }
    }

    pub(super) fn contains(self, member: u8) -> bool {
        self.0[usize::from(member / 64)] >> (member % 64) & 1 == 1
    }

    pub(super) fn meets(self, other: Self) -> bool {
        self.0.iter().zip(other.0).any(|(words, others)| words & others != 0)
    }

    pub(super) fn is_empty(self) -> bool {
        self.0 == [0; 4]
    }
}

/// The characters, cut into ranges of which every class has all or none.
pub(super) struct Alphabet {
    /// The first character of each range, in order.
    firsts: Vec<char>,
}

impl Alphabet {
    /// That of all texts and classes; `None` if they tell too many kinds apart.
    pub(super) fn new(rules: &[Rule]) -> Option<Self> {
        let mut firsts = vec!['\0'];
        for rule in rules {
            add_limits(&rule.alternatives, &mut firsts);
        }
        firsts.sort_unstable();
        firsts.dedup();
        (firsts.len() <= MAX_KINDS).then_some(Self { firsts })
    }

    pub(super) fn kinds(&self) -> impl Iterator<Item = u8> {
        (0..=u8::MAX).take(self.firsts.len())
    }

    pub(super) fn of_character(&self, character: char) -> Set {
        let after = self.firsts.partition_point(|&first| first <= character);
        let mut set = Set::default();
        set.insert(u8::try_from(after - 1).unwrap_or(u8::MAX));
        set
    }

    pub(super) fn of_class(&self, class: &Class) -> Set {
        let mut set = Set::default();
        for (kind, &first) in self.kinds().zip(&self.firsts) {
            if class.contains(first) {
                set.insert(kind);
            }
        }
        set
    }

    /// The bytes that characters of these kinds begin with in UTF-8, and maybe others between.
    pub(super) fn first_bytes(&self, characters: Set) -> Set {
        let mut bytes = Set::default();
        for (kind, &first) in self.kinds().zip(&self.firsts) {
            if !characters.contains(kind) {
                continue;
            }
            let next = self.firsts.get(usize::from(kind) + 1);
            let last = next.map_or(u32::from(char::MAX), |&next| u32::from(next) - 1);
            for byte in first_byte(u32::from(first))..=first_byte(last) {
                bytes.insert(byte);
            }
        }
        bytes
    }
}

fn add_limits(alternatives: &Alternatives, firsts: &mut Vec<char>) {
    for item in alternatives.iter().flatten() {
        match &item.element {
            Element::Text(text) => {
                text.chars().for_each(|character| add_range(character, character, firsts));
            }
            Element::Class(class) => {
                class.ranges.iter().for_each(|&(first, last)| add_range(first, last, firsts));
            }
            Element::Group(inner) => add_limits(inner, firsts),
            Element::Rule(_) => {}
        }
    }
}

fn add_range(first: char, last: char, firsts: &mut Vec<char>) {
    firsts.push(first);
    firsts.extend((last..=char::MAX).nth(1));
}

fn first_byte(code: u32) -> u8 {
    let byte = match code {
        0..0x80 => code,
        0x80..0x800 => 0xC0 | code >> 6,
        0x800..0x1_0000 => 0xE0 | code >> 12,
        _ => 0xF0 | code >> 18,
    };
    u8::try_from(byte).unwrap_or(u8::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn first_bytes_are_those_of_utf8() {
        for character in
            ['\0', 'a', '\u{7f}', '\u{80}', 'é', '\u{7ff}', '\u{800}', '語', '\u{10ffff}']
        {
            let utf8 = character.to_string();
            assert_eq!(first_byte(u32::from(character)), utf8.as_bytes()[0], "{character:?}");
        }
    }
}
