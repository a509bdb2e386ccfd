//! Observations of a simulation: the answer to each request, and sums over replicas.

use crate::replica::Replica;

/// What became of a request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Answer {
    /// The replica that answered.
    pub replica: u32,
    /// Tokens of its prompt that were found in the cache there.
    pub cached: u32,
    /// Microseconds from the begin of the simulation at which it was sent.
    pub sent: u64,
    /// Microseconds from there to its first token.
    pub first_token: u64,
}

/// What was observed.
#[derive(Clone, Debug, Default)]
pub(crate) struct Run {
    pub(crate) answers: Vec<Answer>,
    pub(crate) prompt_tokens: u64,
    pub(crate) output_tokens: u64,
    pub(crate) end: u64,             // microseconds
    pub(crate) open_time: Vec<u128>, // by replica: open requests times microseconds
    pub(crate) replicas: Vec<Replica>,
    pub(crate) restarted: u32, // requests that were open at the lost replica
    pub(crate) keys_of_lost: u32,
    pub(crate) keys_of_others: u32, // that moved all the same
}
