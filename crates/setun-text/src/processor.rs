//! Steps of a caller's own on the way to a choice.

use std::{fmt, sync::Arc};

use crate::{Step, TextError};

/// `Send` and `Sync` where there are threads; nothing in WebAssembly, where a host's functions
/// are not.
#[cfg(not(target_family = "wasm"))]
pub trait MaybeShared: Send + Sync {}
#[cfg(not(target_family = "wasm"))]
impl<T: Send + Sync + ?Sized> MaybeShared for T {}

/// `Send` and `Sync` where there are threads; nothing in WebAssembly, where a host's functions
/// are not.
#[cfg(target_family = "wasm")]
pub trait MaybeShared {}
#[cfg(target_family = "wasm")]
impl<T: ?Sized> MaybeShared for T {}

/// A custom sampling step: it changes the logits of candidates, or drops them.
///
/// It is taken for greedy choices, too. What it does should follow from its arguments alone, so
/// that a text stays the same where a token is chosen again.
pub trait LogitsProcessor: MaybeShared {
    /// Works on what the steps before it have left.
    ///
    /// # Errors
    ///
    /// Whatever keeps it from its work, as [`TextError::Processor`]: the generation ends.
    fn process(&self, candidates: &mut Candidates, step: &Step<'_>) -> Result<(), TextError>;
}

/// The tokens that are left to choose from.
#[derive(Clone, Debug, PartialEq)]
pub struct Candidates {
    tokens: Vec<(u32, f32)>,
}

impl Candidates {
    pub(crate) fn new(mut tokens: Vec<(u32, f32)>) -> Self {
        tokens.sort_unstable_by_key(|&(token, _)| token);
        Self { tokens }
    }

    pub(crate) fn into_tokens(self) -> Vec<(u32, f32)> {
        self.tokens
    }

    /// Ids and logits, ascending by id.
    #[must_use]
    pub fn as_slice(&self) -> &[(u32, f32)] {
        &self.tokens
    }

    /// Gives each token the logit that `change` makes of its id and logit. A token that gets −∞
    /// is dropped; one that gets another number that is not finite ends the generation.
    pub fn change(&mut self, mut change: impl FnMut(u32, f32) -> f32) {
        for (token, logit) in &mut self.tokens {
            *logit = change(*token, *logit);
        }
        self.tokens.retain(|&(_, logit)| logit != f32::NEG_INFINITY);
    }

    /// Drops the tokens for which `keep` is false.
    pub fn retain(&mut self, mut keep: impl FnMut(u32, f32) -> bool) {
        self.tokens.retain(|&(token, logit)| keep(token, logit));
    }
}

/// A [`LogitsProcessor`] as options hold it. Equal is what is the same processor.
#[derive(Clone)]
pub struct SharedProcessor(Arc<dyn LogitsProcessor>);

impl SharedProcessor {
    /// From a processor.
    pub fn new(processor: impl LogitsProcessor + 'static) -> Self {
        Self(Arc::new(processor))
    }

    pub(crate) fn process(
        &self,
        candidates: &mut Candidates,
        step: &Step<'_>,
    ) -> Result<(), TextError> {
        self.0.process(candidates, step)
    }
}

impl<P: LogitsProcessor + 'static> From<P> for SharedProcessor {
    fn from(processor: P) -> Self {
        Self::new(processor)
    }
}

impl fmt::Debug for SharedProcessor {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("SharedProcessor")
    }
}

impl PartialEq for SharedProcessor {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

crate::structured_options!(SharedProcessor);
