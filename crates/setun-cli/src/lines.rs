//! Messages as lines of standard input.

use std::io::{self, BufRead, IsTerminal, Read, StdinLock};

use crate::{
    error::CliError,
    output::{Output, report},
};

/// Most bytes of a message: more than any context holds.
const MAX_LINE: u64 = 1 << 24;

/// Standard input, line by line.
#[derive(Debug)]
pub struct Lines {
    input: StdinLock<'static>,
    pub(crate) is_terminal: bool,
}

impl Lines {
    /// Locks standard input.
    #[must_use]
    #[expect(clippy::new_without_default, reason = "a lock is taken")]
    pub fn new() -> Self {
        let input = io::stdin().lock();
        let is_terminal = input.is_terminal() && io::stdout().is_terminal();
        Self { input, is_terminal }
    }

    /// The next line that is text, which a terminal is asked for; none at the end.
    pub fn next(
        &mut self,
        prompt: &str,
        what: &str,
        output: &mut Output,
    ) -> Result<Option<String>, CliError> {
        loop {
            if self.is_terminal {
                output.write(prompt)?;
            }
            match read_line(&mut self.input).map_err(CliError::Input)? {
                None => return Ok(None),
                Some(Ok(line)) => return Ok(Some(line)),
                Some(Err(reason)) => {
                    report(&format!("setun: {what} is skipped: {reason}\n"));
                }
            }
        }
    }
}

/// A line without its break, or why it is no message; none at the end of input.
fn read_line(input: &mut impl BufRead) -> io::Result<Option<Result<String, String>>> {
    let mut line = vec![];
    let read = input.by_ref().take(MAX_LINE + 1).read_until(b'\n', &mut line)?;
    if read == 0 {
        return Ok(None);
    }
    if read as u64 > MAX_LINE && !line.ends_with(b"\n") {
        input.skip_until(b'\n')?;
        return Ok(Some(Err(format!("it has more than {MAX_LINE} bytes"))));
    }
    let line = String::from_utf8(line).map_err(|error| {
        let offset = error.utf8_error().valid_up_to();
        format!("it is not UTF-8: byte {offset} starts no character")
    });
    Ok(Some(line.map(|line| line.trim_end_matches(['\n', '\r']).to_owned())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_that_is_no_message_is_left_behind_and_the_next_is_read() {
        let most = usize::try_from(MAX_LINE).expect("a small number");
        let [whole, longer] = [most, most + 1].map(|length| "a".repeat(length));
        let text = [b"\xc3\xa9\r\n\nab\xff\n", whole.as_bytes(), b"\n", longer.as_bytes()];
        let text = [&text.concat(), &b"\nlast"[..]].concat();
        let mut input = &text[..];
        let mut next = || read_line(&mut input).expect("memory");
        assert_eq!(next(), Some(Ok("é".into())));
        assert_eq!(next(), Some(Ok(String::new())));
        let reason = "it is not UTF-8: byte 2 starts no character";
        assert_eq!(next(), Some(Err(reason.into())));
        assert!(next() == Some(Ok(whole)), "as many bytes as may be");
        assert_eq!(next(), Some(Err("it has more than 16777216 bytes".into())));
        assert_eq!(next(), Some(Ok("last".into())));
        assert_eq!(next(), None);
    }
}
