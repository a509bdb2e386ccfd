//! Errors of traces, tables of costs and options.

/// Why a simulation cannot be made.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum SimulateError {
    /// A line of a trace is not a request.
    #[error("line {line} of the trace: {reason}")]
    Line {
        /// Its number, from 1 on.
        line: usize,
        /// What is wrong.
        reason: String,
    },

    /// A trace without requests.
    #[error("the trace has no requests")]
    EmptyTrace,

    /// A request that no replica has room for.
    #[error(
        "request {request} of the trace, of `{key}`, has {tokens} tokens with its output, and the \
         cache of a replica {cache}"
    )]
    TooLong {
        /// Its number, from 1 on.
        request: usize,
        /// Its key.
        key: String,
        /// Tokens of its prompt and its output.
        tokens: u64,
        /// Tokens of the cache, in whole blocks.
        cache: u64,
    },

    /// Step costs that are not a table of growing rows and times.
    #[error("step costs: {0}")]
    Costs(String),

    /// An option out of its range.
    #[error("{option}: found {found}, expected {expected}")]
    Option {
        /// Its name.
        option: &'static str,
        /// Its value.
        found: String,
        /// What may be there.
        expected: String,
    },
}
