//! Constraints on the tokens that may come next: a JSON schema, a grammar, a custom one.

#[cfg(feature = "grammar")]
mod grammar;

use std::{fmt, sync::Arc};

use setun_model::MaybeSend;
use setun_text::{MaybeShared, TokenMask};

use crate::error::Error;

/// A form that texts are to have. Generations share it, and each follows it by a state of its own.
pub trait Constraint: MaybeShared {
    /// The state before the first generated token.
    fn begin(&self) -> Box<dyn ConstraintState>;

    /// The parts of the constraint that are left free, in sentences.
    fn warnings(&self) -> Vec<String> {
        vec![]
    }

    /// Whether it is of tools and of a response format for answers without calls.
    #[cfg(not(feature = "grammar"))]
    fn is_beside_tools(&self) -> bool {
        false
    }

    /// The grammar that it was compiled from, if any. With tools it is compiled again, together with their calls.
    #[cfg(feature = "grammar")]
    fn grammar(&self) -> Option<&setun_grammar::GrammarSpec> {
        None
    }
}

/// The place of a text in its form. It depends on the form, the tokens taken and the number of
/// tokens left, and on nothing else.
pub trait ConstraintState: MaybeSend {
    /// Makes the next answer of [`mask`](Self::mask) ready. It is called beside the forward pass:
    /// natively on another thread, in a browser while a GPU runs it.
    fn prepare(&mut self) {}

    /// The tokens that may come next, at least one. Where the text may end these are also tokens
    /// that end it.
    ///
    /// # Errors
    ///
    /// If no token may come, or another error ends the generation.
    fn mask(&mut self) -> Result<&TokenMask, Error>;

    /// Takes a token that the mask allows.
    ///
    /// # Errors
    ///
    /// An error, which ends the generation.
    fn accept(&mut self, token: u32) -> Result<(), Error>;

    /// Says how many tokens may still be generated, one that ends the text included. A form may
    /// then forbid tokens after which its text could not be completed with those.
    fn set_tokens_left(&mut self, _tokens: usize) {}

    /// Whether the text may end here.
    ///
    /// # Errors
    ///
    /// An error, which ends the generation.
    fn may_end(&mut self) -> Result<bool, Error> {
        Ok(true)
    }
}

/// A [`Constraint`] as options hold it. Two are equal if they are the same object.
#[derive(Clone)]
pub struct SharedConstraint(Arc<dyn Constraint>);

impl SharedConstraint {
    /// From a form.
    pub fn new(form: impl Constraint + 'static) -> Self {
        Self(Arc::new(form))
    }

    pub(crate) fn begin(&self) -> Box<dyn ConstraintState> {
        self.0.begin()
    }

    /// The parts of the constraint that are left free, in sentences.
    #[must_use]
    pub fn warnings(&self) -> Vec<String> {
        self.0.warnings()
    }

    #[cfg(not(feature = "grammar"))]
    pub(crate) fn is_beside_tools(&self) -> bool {
        self.0.is_beside_tools()
    }

    #[cfg(feature = "grammar")]
    pub(crate) fn grammar(&self) -> Option<&setun_grammar::GrammarSpec> {
        self.0.grammar()
    }

    /// The form of what follows these tokens.
    pub(crate) fn after(self, tokens: &[u32]) -> Self {
        if tokens.is_empty() {
            self
        } else {
            Self::new(After { form: self, tokens: tokens.into() })
        }
    }
}

/// A form of which some tokens have been taken.
struct After {
    form: SharedConstraint,
    tokens: Box<[u32]>,
}

impl Constraint for After {
    fn begin(&self) -> Box<dyn ConstraintState> {
        let mut state = self.form.begin();
        match self.tokens.iter().try_for_each(|&token| state.accept(token)) {
            Ok(()) => state,
            Err(error) => Box::new(Failed(error.to_string())),
        }
    }
}

/// The state of a form that some token does not follow.
struct Failed(String);

impl ConstraintState for Failed {
    fn mask(&mut self) -> Result<&TokenMask, Error> {
        Err(Error::Constraint { reason: self.0.clone() })
    }

    fn accept(&mut self, _: u32) -> Result<(), Error> {
        Err(Error::Constraint { reason: self.0.clone() })
    }
}

impl fmt::Debug for SharedConstraint {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("SharedForm")
    }
}

impl PartialEq for SharedConstraint {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}
