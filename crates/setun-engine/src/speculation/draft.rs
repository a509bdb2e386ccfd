//! Requests to a draft model.

use setun_model::SequenceId;
use setun_text::{Sampler, Step};

/// A sequence for which tokens are to be proposed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DraftRequest<'a> {
    /// The sequence, by the name that it has in the target's cache.
    pub(crate) sequence: SequenceId,
    /// Where the first token is proposed: after its history, whose last token has not been run,
    /// and with random numbers. Those of further tokens have the indices after it.
    pub(crate) step: Step<'a>,
    /// Most tokens to propose; 1 or more.
    pub(crate) most: usize,
    /// How the target chooses in this sequence; none if as the draft was told once.
    pub(crate) sampler: Option<&'a Sampler>,
}
