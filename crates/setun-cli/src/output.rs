//! Standard output and what a terminal shows.

use std::{
    io::{self, StdoutLock, Write},
    iter,
    time::{Duration, Instant},
};

use indicatif::{DecimalBytes, ProgressBar, ProgressDrawTarget, ProgressStyle};
use serde::Serialize;

use crate::error::CliError;

/// Standard output. A reader that has left is [`CliError::ClosedPipe`].
pub(crate) struct Output {
    stdout: StdoutLock<'static>,
    in_line: bool, // text stands in the last line
}

impl Output {
    /// Locks standard output.
    pub(crate) fn new() -> Self {
        Self { stdout: io::stdout().lock(), in_line: false }
    }

    /// Writes, and hands it on at once.
    pub(crate) fn write(&mut self, text: &str) -> Result<(), CliError> {
        if let Some(last) = text.chars().last() {
            self.in_line = last != '\n';
        }
        self.stdout.write_all(text.as_bytes()).and_then(|()| self.stdout.flush()).map_err(failed)
    }

    /// Writes a line, and hands it on at once.
    pub(crate) fn line(&mut self, text: &str) -> Result<(), CliError> {
        self.stdout.write_all(text.as_bytes()).map_err(failed)?;
        self.write("\n")
    }

    /// Ends the line that was begun, so that the error which ends the text has one of its own.
    pub(crate) fn fail<T>(&mut self, error: setun::EngineError) -> Result<T, CliError> {
        if self.in_line {
            self.write("\n")?;
        }
        Err(error.into())
    }

    /// Writes a value as one line of JSON.
    pub(crate) fn json(&mut self, value: &impl Serialize) -> Result<(), CliError> {
        let text = serde_json::to_string(value).map_err(|error| failed(error.into()))?;
        self.line(&text)
    }
}

fn failed(error: io::Error) -> CliError {
    if error.kind() == io::ErrorKind::BrokenPipe {
        CliError::ClosedPipe
    } else {
        CliError::Output(error)
    }
}

/// Writes to standard error. A closed standard error is no failure.
pub(crate) fn report(text: &str) {
    let _ = io::stderr().write_all(text.as_bytes());
}

/// Work that takes no longer shows no progress.
const PROGRESS_DELAY: Duration = Duration::from_millis(300);

/// Status line on standard error; nothing where that is no terminal.
pub(crate) struct Progress {
    begun: Instant,
    line: ProgressBar,
}

impl Progress {
    /// An empty line.
    pub(crate) fn new() -> Self {
        let line = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
        if let Ok(style) = ProgressStyle::with_template("{msg}") {
            line.set_style(style);
        }
        Self { begun: Instant::now(), line }
    }

    /// Replaces the text.
    pub(crate) fn show(&mut self, text: impl FnOnce() -> String) {
        if !self.line.is_hidden() && self.begun.elapsed() > PROGRESS_DELAY {
            self.line.set_message(text());
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.line.finish_and_clear();
    }
}

/// A count with its noun: `1 thread`, `2 threads`.
pub(crate) fn counted(count: usize, noun: &str) -> String {
    let plural = if count == 1 { "" } else { "s" };
    format!("{count} {noun}{plural}")
}

/// Columns of text, each as wide as its widest entry; numbers are for the caller to align.
pub(crate) fn table(rows: &[Vec<String>]) -> String {
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
