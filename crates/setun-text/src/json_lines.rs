//! JSON that is written line by line.

use std::io::{self, Write};

/// Line breaks that JSON allows in a string and some readers of lines cut at, in UTF-8, with their
/// escapes. JSON itself escapes those below U+0020.
const BREAKS: [(&[u8], &[u8]); 3] = [
    ("\u{85}".as_bytes(), b"\\u0085"),
    ("\u{2028}".as_bytes(), b"\\u2028"),
    ("\u{2029}".as_bytes(), b"\\u2029"),
];

/// Escapes the line breaks in JSON from a place on. They stand in its strings alone.
pub fn escape_line_breaks(json: &mut Vec<u8>, begin: usize) {
    let Some(first) = (begin..json.len()).find(|&place| line_break(&json[place..]).is_some())
    else {
        return;
    };
    let rest = json.split_off(first);
    let mut rest = &rest[..];
    while let Some(&byte) = rest.first() {
        if let Some((found, escape)) = line_break(rest) {
            json.extend_from_slice(escape);
            rest = &rest[found.len()..];
        } else {
            json.push(byte);
            rest = &rest[1..];
        }
    }
}

/// The line break that bytes begin with.
fn line_break(bytes: &[u8]) -> Option<(&'static [u8], &'static [u8])> {
    if !matches!(bytes.first(), Some(0xc2 | 0xe2)) {
        return None;
    }
    BREAKS.into_iter().find(|(found, _)| bytes.starts_with(found))
}

/// A writer of JSON in which line breaks are escaped, however it is cut.
#[derive(Debug)]
pub struct JsonLines<W: Write> {
    target: W,
    /// The beginning of what may be a line break.
    held: Vec<u8>,
}

impl<W: Write> JsonLines<W> {
    /// Over another writer.
    pub fn new(target: W) -> Self {
        Self { target, held: vec![] }
    }

    /// Writes what is held back, and gives the target.
    ///
    /// # Errors
    ///
    /// If the target cannot be written.
    pub fn finish(mut self) -> io::Result<W> {
        self.target.write_all(&self.held)?;
        Ok(self.target)
    }
}

impl<W: Write> Write for JsonLines<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut json = std::mem::take(&mut self.held);
        json.extend_from_slice(bytes);
        escape_line_breaks(&mut json, 0);
        let is_begun = |count: &usize| {
            let end = &json[json.len() - count..];
            BREAKS.iter().any(|(found, _)| found.starts_with(end))
        };
        let held = (1..=2.min(json.len())).rev().find(is_begun).unwrap_or(0);
        self.held = json.split_off(json.len() - held);
        self.target.write_all(&json)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.target.flush()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::Value;

    use super::*;

    /// Texts of line breaks, and of characters whose bytes begin like them.
    fn texts() -> impl Strategy<Value = String> {
        "[a\u{85}\u{2028}\u{2029}\u{86}\u{2027}\u{202a}\u{b}\u{c}\u{1c}\u{1e}\n\"\\\\é]{0,12}"
    }

    proptest! {
        #[test]
        fn lines_are_whole_and_read_as_the_same_texts(text in texts(), cuts in proptest::collection::vec(0_usize..40, 3)) {
            let written = serde_json::to_vec(&text).expect("JSON");
            let mut escaped = b"\xc2\x85".to_vec();
            escaped.extend_from_slice(&written);
            escape_line_breaks(&mut escaped, 2);
            prop_assert_eq!(&escaped[..2], b"\xc2\x85");
            let escaped = String::from_utf8(escaped.split_off(2)).expect("UTF-8");
            let breaks = |letter: char| {
                matches!(letter, '\u{85}' | '\u{2028}' | '\u{2029}') || letter < ' '
            };
            prop_assert!(!escaped.contains(breaks), "{}", escaped);
            prop_assert_eq!(serde_json::from_str::<Value>(&escaped).expect("JSON"), Value::from(text));
            let mut lines = JsonLines::new(vec![]);
            let mut begin = 0;
            let mut ends: Vec<_> = cuts.iter().map(|cut| cut % (written.len() + 1)).collect();
            ends.sort_unstable();
            for end in ends.into_iter().chain([written.len()]) {
                lines.write_all(&written[begin..end]).expect("written");
                begin = end;
            }
            prop_assert_eq!(lines.finish().expect("written"), escaped.into_bytes());
        }
    }
}
