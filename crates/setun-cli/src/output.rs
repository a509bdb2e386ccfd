//! Standard output and what a terminal shows.

use std::{
    io::{self, IsTerminal, Write},
    iter,
    time::{Duration, Instant},
};

use indicatif::{DecimalBytes, ProgressBar, ProgressDrawTarget, ProgressStyle};
use serde::Serialize;
use setun::text::escape_line_breaks;

use crate::{
    error::CliError,
    log_writer,
    terminal::{EscapedStderr, escaped},
};

/// Standard output, [escaped] where it is a terminal. A reader that has left is
/// [`CliError::ClosedPipe`].
pub struct Output {
    target: Box<dyn Write>,
    is_terminal: bool,
    in_line: bool,      // text stands in the last line
    in_reasoning: bool, // reasoning is the last that was written
}

/// Escape sequences that begin and end dim text on a terminal.
const DIM: [&str; 2] = ["\x1b[2m", "\x1b[0m"];

impl Output {
    /// Locks standard output.
    #[must_use]
    #[expect(clippy::new_without_default, reason = "a lock is taken")]
    pub fn new() -> Self {
        let stdout = io::stdout().lock();
        let is_terminal = stdout.is_terminal();
        Self { target: Box::new(stdout), is_terminal, in_line: false, in_reasoning: false }
    }

    /// Writes, and hands it on at once.
    pub fn write(&mut self, text: &str) -> Result<(), CliError> {
        if !text.is_empty() && std::mem::take(&mut self.in_reasoning) {
            if self.is_terminal {
                self.put("\n\n").map_err(failed)?;
            } else {
                report("\n");
            }
        }
        if let Some(last) = text.chars().last() {
            self.in_line = last != '\n';
        }
        self.put(text).and_then(|()| self.target.flush()).map_err(failed)
    }

    /// Writes reasoning: dim on a terminal, otherwise to standard error.
    pub(crate) fn reasoning(&mut self, text: &str) -> Result<(), CliError> {
        if text.is_empty() {
            return Ok(());
        }
        self.in_reasoning = true;
        if !self.is_terminal {
            report(text);
            return Ok(());
        }
        let [dim, plain] =
            if std::env::var_os("NO_COLOR").is_none_or(|no| no.is_empty()) { DIM } else { [""; 2] };
        let shown = format!("{dim}{}{plain}", escaped(text));
        let written = self.target.write_all(shown.as_bytes());
        written.and_then(|()| self.target.flush()).map_err(failed)
    }

    /// Writes a line, and hands it on at once.
    pub fn line(&mut self, text: &str) -> Result<(), CliError> {
        self.put(text).map_err(failed)?;
        self.write("\n")
    }

    fn put(&mut self, text: &str) -> io::Result<()> {
        let shown = if self.is_terminal { escaped(text) } else { text.into() };
        self.target.write_all(shown.as_bytes())
    }

    /// Ends the line that was begun, so that the error which ends the text has one of its own.
    pub(crate) fn fail<T>(&mut self, error: setun::EngineError) -> Result<T, CliError> {
        if self.in_line {
            self.write("\n")?;
        }
        Err(error.into())
    }

    /// Writes a value as one line of JSON.
    pub fn json(&mut self, value: &impl Serialize) -> Result<(), CliError> {
        let mut text = serde_json::to_vec(value).map_err(|error| failed(error.into()))?;
        escape_line_breaks(&mut text, 0);
        self.line(&String::from_utf8_lossy(&text))
    }
}

fn failed(error: io::Error) -> CliError {
    if error.kind() == io::ErrorKind::BrokenPipe {
        CliError::ClosedPipe
    } else {
        CliError::Output(error)
    }
}

/// Writes to standard error, [escaped] where it is a terminal. One that cannot be written is no
/// failure, and a server waits for no reader of it.
pub fn report(text: &str) {
    report_bytes(text.as_bytes());
}

/// Reports bytes, as [`report`] does a text.
pub(crate) fn report_bytes(text: &[u8]) {
    if !log_writer::push(text) {
        let _ = EscapedStderr::shared().write_all(text);
    }
}

/// Work that takes no longer shows no progress.
const PROGRESS_DELAY: Duration = Duration::from_millis(300);

/// Status line on standard error; nothing where that is no terminal.
pub struct Progress {
    begun: Instant,
    line: ProgressBar,
}

impl Progress {
    /// An empty line.
    #[must_use]
    #[expect(clippy::new_without_default, reason = "it is shown from now on")]
    pub fn new() -> Self {
        let line = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
        if let Ok(style) = ProgressStyle::with_template("{msg}") {
            line.set_style(style);
        }
        Self { begun: Instant::now(), line }
    }

    /// Replaces the text.
    pub fn show(&mut self, text: impl FnOnce() -> String) {
        if !self.line.is_hidden() && self.begun.elapsed() > PROGRESS_DELAY {
            self.line.set_message(escaped(&text()).into_owned());
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.line.finish_and_clear();
    }
}

/// A count with its noun: `1 thread`, `2 threads`.
#[must_use]
pub fn counted(count: usize, noun: &str) -> String {
    let plural = if count == 1 { "" } else { "s" };
    format!("{count} {noun}{plural}")
}

/// Columns of text, each as wide as its widest entry; numbers are for the caller to align. A line
/// break in an entry, such as a tensor's name, begins no row.
pub(crate) fn table(rows: &[Vec<String>]) -> String {
    let entries =
        |row: &Vec<String>| row.iter().map(|entry| entry.replace('\n', "\\u000a")).collect();
    let rows: Vec<Vec<String>> = rows.iter().map(entries).collect();
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let width = |column| {
        rows.iter()
            .filter_map(|row| row.get(column))
            .map(|entry: &String| entry.chars().count())
            .max()
    };
    let widths: Vec<_> = (0..columns).map(|column| width(column).unwrap_or(0)).collect();
    let line = |row: &Vec<String>| {
        let cells = row.iter().zip(&widths).map(|(entry, width)| format!("{entry:width$}"));
        cells.collect::<Vec<_>>().join("  ").trim_end().to_owned()
    };
    rows.iter().map(line).collect::<Vec<_>>().join("\n")
}

/// The same below a title.
pub(crate) fn titled<const COLUMNS: usize>(
    title: [&str; COLUMNS],
    rows: impl IntoIterator<Item = Vec<String>>,
) -> String {
    let title = iter::once(title.map(str::to_owned).to_vec());
    table(&title.chain(rows).collect::<Vec<_>>())
}

/// Bytes in words: `1.18 GB`.
pub(crate) fn size(bytes: u64) -> String {
    DecimalBytes(bytes).to_string()
}

#[cfg(test)]
mod tests {
    use std::{cell::RefCell, rc::Rc};

    use super::*;

    #[derive(Clone, Default)]
    struct Written(Rc<RefCell<Vec<u8>>>);

    impl Write for Written {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.borrow_mut().extend(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    fn written(is_terminal: bool) -> String {
        let target = Written::default();
        let mut output = Output {
            target: Box::new(target.clone()),
            is_terminal,
            in_line: false,
            in_reasoning: false,
        };
        output.write("a\x1b[2J\n").expect("memory");
        output.line("b\u{202e}").expect("memory");
        output.json(&["c\u{9b}"]).expect("memory");
        let bytes = target.0.borrow().clone();
        String::from_utf8(bytes).expect("UTF-8")
    }

    #[test]
    fn a_line_break_in_an_entry_begins_no_row() {
        let rows = [["a\nb", "1"], ["c", "2"]].map(|row| row.map(str::to_owned).to_vec());
        assert_eq!(table(&rows), "a\\u000ab  1\nc         2");
    }

    #[test]
    fn a_terminal_shows_controls_and_a_pipe_gets_them() {
        assert_eq!(written(true), "a\\u001b[2J\nb\\u202e\n[\"c\\u009b\"]\n");
        assert_eq!(written(false), "a\x1b[2J\nb\u{202e}\n[\"c\u{9b}\"]\n");
    }
}
