//! Escaping of control characters in what a terminal shows.
//!
//! Names, errors and generated text come from files, servers and models. A terminal obeys some of
//! their characters: it moves the cursor, changes its title, or hides a part of a line. Everything
//! that this program writes to a terminal passes [`escaped`]; files and pipes get every byte.

use std::{
    borrow::Cow,
    fmt::Write as _,
    fs::File,
    io::{self, IsTerminal, Write},
};

/// The same text with each [control](is_control) as `\u` and four hexadecimal digits, which is
/// valid inside a JSON string, too.
pub(crate) fn escaped(text: &str) -> Cow<'_, str> {
    if !text.contains(is_control) {
        return Cow::Borrowed(text);
    }
    let mut escaped = String::with_capacity(text.len() + 16);
    for character in text.chars() {
        if is_control(character) {
            // Writing to a string does not fail.
            let _ = write!(escaped, "\\u{:04x}", u32::from(character));
        } else {
            escaped.push(character);
        }
    }
    Cow::Owned(escaped)
}

/// Whether a terminal may obey a character: C0 but for line break and tab, delete, C1, and what
/// embeds, overrides or isolates a direction of writing.
pub(crate) fn is_control(character: char) -> bool {
    match character {
        '\n' | '\t' => false,
        '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => true,
        other => other.is_control(),
    }
}

/// Standard error: escaped where that is a terminal.
pub(crate) struct EscapedStderr<W = io::Stderr> {
    stderr: W,
    is_terminal: bool,
}

impl EscapedStderr {
    /// The one that all threads share, which one writes to at a time.
    pub(crate) fn shared() -> Self {
        let stderr = io::stderr();
        Self { is_terminal: stderr.is_terminal(), stderr }
    }
}

impl EscapedStderr<File> {
    /// A second descriptor of the same file. Writing to it takes no lock of the standard library.
    pub(crate) fn of_its_own() -> io::Result<Self> {
        let stderr = io::stderr();
        #[cfg(unix)]
        let file = std::os::fd::AsFd::as_fd(&stderr).try_clone_to_owned()?;
        #[cfg(windows)]
        let file = std::os::windows::io::AsHandle::as_handle(&stderr).try_clone_to_owned()?;
        Ok(Self { is_terminal: stderr.is_terminal(), stderr: file.into() })
    }
}

impl<W: Write> Write for EscapedStderr<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.is_terminal {
            self.stderr.write_all(escaped(&String::from_utf8_lossy(bytes)).as_bytes())?;
        } else {
            self.stderr.write_all(bytes)?;
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.stderr.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ordinary_text_is_not_copied() {
        let text = "Grüße,\n\t東京 \u{1f469}\u{200d}\u{1f680} שלום\u{200f} \\x1b";
        assert!(matches!(escaped(text), Cow::Borrowed(found) if found == text));
    }

    #[test]
    fn every_control_is_shown_and_nothing_else_changes() {
        let controls = ('\0'..='\u{ffff}').filter(|&one| is_control(one));
        let expected = (0..32).filter(|code| ![9, 10].contains(code));
        let expected = expected.chain(127..160).chain(0x202a..=0x202e).chain(0x2066..=0x2069);
        assert!(controls.map(u32::from).eq(expected));
        assert_eq!(escaped("a\x1b]0;title\x07b"), "a\\u001b]0;title\\u0007b");
        assert_eq!(
            escaped("\u{9b}2J\r\u{202e}gnp.exe\x7f"),
            "\\u009b2J\\u000d\\u202egnp.exe\\u007f"
        );
    }

    #[test]
    fn escaped_json_is_the_same_json() {
        let value = serde_json::Value::from("a\x1b[2J\u{9b}\u{7f}\u{202e}\u{2069}\n");
        let text = value.to_string();
        let shown = escaped(&text);
        assert!(!shown.contains(is_control), "{shown:?}");
        assert_eq!(serde_json::from_str::<serde_json::Value>(&shown).expect("JSON"), value);
    }
}
