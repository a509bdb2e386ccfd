//! Log of the library's `tracing` spans and events on standard error, as `RUST_LOG` asks.

use std::env;

use tracing_subscriber::{EnvFilter, fmt::format::FmtSpan};

use crate::terminal::EscapedStderr;

/// The environment variable with the filter, such as `setun=debug`.
const VARIABLE: &str = "RUST_LOG";

/// Installs the log if the variable is set. Otherwise nothing is recorded.
pub(crate) fn install() {
    if env::var_os(VARIABLE).is_none_or(|filter| filter.is_empty()) {
        return;
    }
    tracing_subscriber::fmt()
        .with_env_filter(EnvFilter::from_env(VARIABLE))
        .with_span_events(FmtSpan::CLOSE)
        .with_writer(|| EscapedStderr)
        .with_ansi(false)
        .init();
}
