//! Beam search: the likeliest texts instead of the likeliest tokens.
//!
//! A search runs several hypotheses, the beams, side by side. In each step every token that may
//! follow every beam is a candidate, scored by the sum of the log-probabilities of its tokens;
//! the best candidates that do not end are the next beams, and those that end are kept by their
//! final score, *sum / length^penalty*, where the length is that of the generated tokens, an end
//! token included. With groups each has beams of its own, and a token that earlier groups have
//! taken in the same step costs a penalty, so that texts differ: Vijayakumar et al., "Diverse beam
//! search: decoding diverse solutions from neural sequence models", 2016.
//!
//! Scores and stopping are those of Hugging Face's `generate`. Log-probabilities are rounded to
//! f32 before penalties and bans act on them, as there; sums are f64. Of equal candidates the one
//! of the earlier beam comes first, then the lower token. As logits do not depend on the batch,
//! neither does what is found.

mod candidates;
mod group;
pub(crate) mod kv_slots;
mod options;
mod search;

pub use options::{BeamOptions, EarlyStopping};
pub(crate) use search::BeamSearch;

use crate::event::FinishReason;

/// A text that a search has found.
#[derive(Clone, Debug, PartialEq)]
pub struct Beam {
    /// The generated tokens, an end token included.
    pub tokens: Vec<u32>,
    /// The sum of the log-probabilities of its tokens, less penalties, divided by the number of
    /// tokens to the power of the length penalty.
    pub score: f64,
    /// Why it ended.
    pub finish_reason: FinishReason,
}

/// A text that a search has found.
#[derive(Clone, Debug, PartialEq)]
pub struct BeamText {
    /// The text, without a stop string or what comes after it.
    pub text: String,
    /// The tokens behind it, an end token included.
    pub tokens: Vec<u32>,
    /// See [`Beam::score`](crate::Beam::score).
    pub score: f64,
    /// Why it ended.
    pub finish_reason: FinishReason,
    /// The stop string that ended it, if one did.
    pub stop: Option<String>,
}

#[cfg(test)]
mod tests;
