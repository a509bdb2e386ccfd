//! Speculative decoding: tokens that a draft proposes, verified all at once in a step of the target.
//!
//! A step over a few tokens of a sequence takes hardly longer than one over one, as it reads the
//! same weights. So tokens are proposed: by [`PromptLookup`] from the text so far, or by a smaller
//! model, the [`DraftModel`]. The target runs them in one step, in which its sampler says of each
//! place what it would have chosen there; the tokens up to the first that does not stay are new,
//! and that one's replacement with them. What the others left in the cache is dropped. So the text
//! is the one without a draft, sampled or not.

mod draft_length;
mod draft_model;
mod lookahead;
mod prompt_lookup;

use draft_length::{DraftCost, DraftLength};
pub(crate) use draft_model::{DraftModel, DraftRequest, DraftRoom};
pub(crate) use lookahead::Lookahead;
use prompt_lookup::PromptLookup;
