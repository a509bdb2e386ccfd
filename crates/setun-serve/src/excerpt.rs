//! Words of clients in errors and in the log, cut where they are long.

use std::fmt::{self, Display, Write};

/// Most characters of a client's words that an error repeats.
const MAX_WORDS: usize = 200;

/// Characters of an error up to which it is whole, and those of its beginning and its end where it is not.
const MAX_MESSAGE: usize = 300;
const BEGINNING: usize = 150;
const END: usize = 50;

/// A value as a client gets it back: its beginning, where it is long. It is not written beyond that.
pub(crate) fn excerpt(words: impl Display) -> String {
    let mut cut = Cut { text: String::new(), left: MAX_WORDS };
    // The end of the room is the only error.
    if write!(cut, "{words}").is_err() {
        cut.text.push('…');
    }
    cut.text
}

/// An error whose words are in part a client's: its beginning and its end, where it is long.
pub(crate) fn bounded(message: String) -> String {
    let characters = message.chars().count();
    if characters <= MAX_MESSAGE {
        return message;
    }
    let beginning: String = message.chars().take(BEGINNING).collect();
    let end: String = message.chars().skip(characters - END).collect();
    format!("{beginning}… ({characters} characters) …{end}")
}

/// Takes the characters that there is room for.
struct Cut {
    text: String,
    left: usize,
}

impl Write for Cut {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        for character in text.chars() {
            self.left = self.left.checked_sub(1).ok_or(fmt::Error)?;
            self.text.push(character);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_words_are_cut_between_characters() {
        assert_eq!(excerpt("é".repeat(200)), "é".repeat(200));
        assert_eq!(excerpt("é".repeat(201)), "é".repeat(200) + "…");
        assert_eq!(excerpt(format_args!("{:?}", "a\n")), "\"a\\n\"");
        assert_eq!(bounded("é".repeat(300)), "é".repeat(300));
        let long = format!("stop: {}, expected less", "é".repeat(1 << 20));
        let cut = bounded(long);
        assert!(cut.starts_with("stop: é") && cut.ends_with("é, expected less"), "{cut}");
        assert!(cut.contains("… (1048597 characters) …"), "{cut}");
        assert!(cut.matches('é').count() <= 200);
    }
}
