//! Keeps the numbers of a JSON text in the range of 64-bit floats.
//!
//! A number of hundreds of digits, or with an exponent of thousands, is JSON, but who reads it
//! takes it for another number or for none. The parser has no bound for it.

use setun_text::{TokenMask, ToolFormat};

/// The most digits before the point.
const MAX_DIGITS: u8 = 200;

/// The most digits of an exponent. With the above, numbers stay below 10^300.
const MAX_EXPONENT_DIGITS: u8 = 2;

/// Where a JSON text is, as far as the size of numbers goes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Scan {
    /// Before a call, after this many bytes of its marker.
    Text(u8),
    /// Between and in everything else.
    #[default]
    Outside,
    InString,
    /// After a backslash in a string.
    Escaped,
    /// In a number, after this many digits.
    Digits(u8),
    /// In a number, after its point.
    Fraction,
    /// In a number's exponent, after this many digits.
    Exponent(u8),
}

impl Scan {
    /// Where the text is after a token, or `None` if a number has become too large.
    pub(crate) fn after(self, bytes: &[u8]) -> Option<Self> {
        bytes.iter().try_fold(self, |scan, &byte| scan.after_byte(byte))
    }

    fn after_byte(self, byte: u8) -> Option<Self> {
        Some(match (self, byte) {
            (Self::Text(matched), _) => Self::in_text(usize::from(matched), byte),
            // A value in XML begins on a line of its own; a string of JSON has no line breaks.
            (_, b'\n') | (Self::InString, b'"') => Self::Outside,
            (Self::InString, b'\\') => Self::Escaped,
            (Self::InString | Self::Escaped, _) | (_, b'"') => Self::InString,
            (Self::Outside, b'0'..=b'9') => Self::Digits(1),
            (Self::Digits(digits), b'0'..=b'9') => {
                return (digits < MAX_DIGITS).then(|| Self::Digits(digits + 1));
            }
            (Self::Exponent(digits), b'0'..=b'9') => {
                return (digits < MAX_EXPONENT_DIGITS).then(|| Self::Exponent(digits + 1));
            }
            (Self::Digits(_), b'.') | (Self::Fraction, b'0'..=b'9') => Self::Fraction,
            (Self::Digits(_) | Self::Fraction, b'e' | b'E') | (Self::Exponent(0), b'+' | b'-') => {
                Self::Exponent(0)
            }
            _ => Self::Outside,
        })
    }

    /// After a byte of a text. The marker's first byte is nowhere else in it.
    fn in_text(matched: usize, byte: u8) -> Self {
        let marker = ToolFormat::HERMES.marker.as_bytes();
        let is_next = |matched: usize| marker.get(matched) == Some(&byte);
        let matched = if is_next(matched) { matched + 1 } else { usize::from(is_next(0)) };
        if matched == marker.len() {
            Self::Outside
        } else {
            Self::Text(u8::try_from(matched).unwrap_or(0))
        }
    }

    fn in_number(self) -> bool {
        matches!(self, Self::Digits(_) | Self::Fraction | Self::Exponent(_))
    }
}

/// The tokens of a vocabulary that can make a number too large.
#[derive(Debug)]
pub(crate) struct NumberTokens {
    /// Those that can go on with a number.
    continuing: Vec<(u32, Box<[u8]>)>,
    /// Those that have too large a number in themselves.
    large: Vec<u32>,
}

impl NumberTokens {
    pub(crate) fn new(words: &[Vec<u8>]) -> Self {
        let mut tokens = Self { continuing: Vec::new(), large: Vec::new() };
        for (id, word) in (0..).zip(words) {
            if matches!(word.first(), Some(b'0'..=b'9' | b'.' | b'e' | b'E' | b'+' | b'-')) {
                tokens.continuing.push((id, word.clone().into_boxed_slice()));
            }
            if [Scan::Outside, Scan::InString].iter().any(|scan| scan.after(word).is_none()) {
                tokens.large.push(id);
            }
        }
        tokens
    }

    /// Takes out of a mask the tokens that make a number too large.
    ///
    /// A text is never left without a way on: a number may end, or go on after its point, where
    /// it may have no more digits.
    pub(crate) fn restrict(&self, mask: &mut TokenMask, scan: Scan) {
        if matches!(scan, Scan::Text(_)) {
            return;
        }
        for &token in &self.large {
            mask.remove(token);
        }
        if scan.in_number() {
            for (token, bytes) in &self.continuing {
                if mask.contains(*token) && scan.after(bytes).is_none() {
                    mask.remove(*token);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_end_before_they_are_too_large() {
        let after = |text: &str| Scan::default().after(text.as_bytes());
        assert_eq!(after("{\"e999\\\"1e999\": -1.5e+99"), Some(Scan::Exponent(2)));
        assert_eq!(after("[false, 1e99, 12"), Some(Scan::Digits(2)));
        assert_eq!((after("1e999"), after("2.5E-100")), (None, None));
        assert_eq!(after(&"9".repeat(200)), Some(Scan::Digits(200)));
        assert_eq!(after(&"9".repeat(201)), None);
        assert_eq!(after(&format!("0.{}", "9".repeat(300))), Some(Scan::Fraction));
        let largest: f64 = format!("{}.9e99", "9".repeat(200)).parse().expect("a number");
        assert!(largest.is_finite());
    }

    #[test]
    fn a_mask_loses_what_is_too_large() {
        let words = ["1", "23", "e9", "99", "\":1e100", "x"].map(|word| word.as_bytes().to_vec());
        let tokens = NumberTokens::new(&words);
        let left = |text: &str| {
            let mut mask = TokenMask::all(words.len());
            tokens.restrict(&mut mask, Scan::default().after(text.as_bytes()).expect("small"));
            mask.iter().collect::<Vec<_>>()
        };
        assert_eq!(left("1"), [0, 1, 2, 3, 5]);
        assert_eq!(left("1e1"), [0, 2, 5]);
        assert_eq!(left("1e12"), [2, 5]);
        assert_eq!(left("\"1e12"), [0, 1, 2, 3, 5]);
    }
}
