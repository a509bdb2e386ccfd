//! Log of the library's `tracing` spans and events on standard error, as `RUST_LOG` asks.

use std::{
    env,
    io::{self, Write},
};

use clap::ValueEnum;
use setun::text::JsonLines;
use tracing_subscriber::{EnvFilter, fmt::format::FmtSpan};

use crate::output::report_bytes;

/// The environment variable with the filter, such as `setun=debug`.
const VARIABLE: &str = "RUST_LOG";

/// How the log is written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum LogFormat {
    /// A line of text for each event
    #[default]
    Text,
    /// A JSON object for each event, with its spans, on a line
    Json,
}

/// Installs the log if the variable is set, or a command has a filter of its own. Otherwise nothing is
/// recorded.
pub(crate) fn install(format: LogFormat, default: Option<&str>) {
    let is_set = env::var_os(VARIABLE).is_some_and(|filter| !filter.is_empty());
    let filter = match default {
        _ if is_set => EnvFilter::from_env(VARIABLE),
        Some(default) => EnvFilter::new(default),
        None => return,
    };
    let log = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_span_events(FmtSpan::CLOSE)
        .log_internal_errors(false) // they would go to standard error, too
        .with_ansi(false);
    match format {
        LogFormat::Text => log.with_writer(|| Log).init(),
        LogFormat::Json => log.json().with_writer(|| JsonLines::new(Log)).init(),
    }
}

/// Standard error, as [`report_bytes`] writes it: a log that cannot be written is no failure.
struct Log;

impl Write for Log {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        report_bytes(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
