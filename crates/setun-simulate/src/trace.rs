//! Traces: requests with their prompts in segments, one a line of JSON.

mod generate;
mod prepared;

use std::fmt::Write as _;

use serde::{Deserialize, Serialize};

use crate::error::SimulateError;
pub use generate::{TraceKind, TraceOptions, generate};
pub(crate) use prepared::{Prepared, prepare};

/// Most tokens of a prompt, and of an output.
pub const MAX_TOKENS: u32 = 1 << 24;

/// Most milliseconds from the begin of a trace: thirty years.
const MAX_MS: u64 = 1_000_000_000_000;

/// A request of a trace.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Request {
    /// Milliseconds from the begin of the trace at which it may be sent. The next turn of a
    /// conversation waits for the end of the one before as well.
    pub at_ms: u64,
    /// What a load balancer hashes: `prompt_cache_key` or the like.
    pub key: String,
    /// Segments of the prompt: an id and a number of tokens. Equal ids mean equal tokens.
    pub prompt: Vec<(String, u32)>,
    /// Tokens that are generated.
    pub output: u32,
}

impl Request {
    /// Tokens of the prompt.
    #[must_use]
    pub fn prompt_tokens(&self) -> u64 {
        self.prompt.iter().map(|(_, tokens)| u64::from(*tokens)).sum()
    }

    /// Whether this is the next turn after `before`: its prompt has all of that one's, then the
    /// reply, which is a segment as long as that output.
    #[must_use]
    pub fn follows(&self, before: &Self) -> bool {
        let rest = self.prompt.strip_prefix(&before.prompt[..]);
        let reply = rest.and_then(|rest| rest.first());
        self.key == before.key && reply.is_some_and(|(_, tokens)| *tokens == before.output)
    }

    fn check(&self) -> Result<(), String> {
        if let Some((id, _)) = self.prompt.iter().find(|(_, tokens)| *tokens == 0) {
            return Err(format!("the segment `{id}` has 0 tokens, expected at least 1"));
        }
        if !(1..=u64::from(MAX_TOKENS)).contains(&self.prompt_tokens()) {
            let found = self.prompt_tokens();
            return Err(format!("the prompt has {found} tokens, expected 1 to {MAX_TOKENS}"));
        }
        if self.at_ms > MAX_MS {
            return Err(format!("`at_ms` is {}, expected at most {MAX_MS}", self.at_ms));
        }
        if !(1..=MAX_TOKENS).contains(&self.output) {
            return Err(format!("`output` is {}, expected 1 to {MAX_TOKENS}", self.output));
        }
        Ok(())
    }
}

/// Reads a trace. Lines without text are passed over.
///
/// # Errors
///
/// If a line is not a request, or is to be sent before the one above it.
pub fn read(text: &str) -> Result<Vec<Request>, SimulateError> {
    let mut requests: Vec<Request> = vec![];
    let lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
    for (index, line) in lines {
        let wrong = |reason: String| SimulateError::Line { line: index + 1, reason };
        let request: Request =
            serde_json::from_str(line).map_err(|error| wrong(in_line(&error)))?;
        request.check().map_err(wrong)?;
        if let Some(before) = requests.last().filter(|before| before.at_ms > request.at_ms) {
            let (at, before) = (request.at_ms, before.at_ms);
            return Err(wrong(format!("`at_ms` is {at}, expected at least {before}, as above it")));
        }
        requests.push(request);
    }
    if requests.is_empty() { Err(SimulateError::EmptyTrace) } else { Ok(requests) }
}

/// An error of JSON with its column; its line is that of the trace.
fn in_line(error: &serde_json::Error) -> String {
    let text = error.to_string();
    let reason = text.split(" at line ").next().unwrap_or_default();
    format!("{reason} at column {}", error.column())
}

/// A trace as [`read`] takes it.
#[must_use]
pub fn write(requests: &[Request]) -> String {
    requests.iter().fold(String::new(), |mut text, request| {
        let line = serde_json::to_string(request).unwrap_or_default(); // which cannot fail
        let _ = writeln!(text, "{line}");
        text
    })
}
