//! Grammars as forms.

use std::sync::Arc;

use setun_grammar::{Constraint, Grammar, GrammarLimits, GrammarSpec, Vocabulary};
use setun_text::TokenMask;

use super::{Form, FormState, SharedForm};
use crate::{engine::Engine, error::Error};

impl Form for Grammar {
    fn begin(&self) -> Box<dyn FormState> {
        Box::new(Constraint::new(self))
    }
}

impl FormState for Constraint {
    fn prepare(&mut self) {
        let _ = Constraint::mask(self); // which keeps it, and an error comes again
    }

    fn mask(&mut self) -> Result<&TokenMask, Error> {
        Ok(Constraint::mask(self)?)
    }

    fn accept(&mut self, token: u32) -> Result<(), Error> {
        Ok(Constraint::accept(self, token)?)
    }
}

impl Engine {
    /// Compiles a form for this model, to be given to any number of generations
    /// ([`GenerateOptions::form`](crate::GenerateOptions::form)). Texts have it from their first
    /// token to their last, unless they end before: the most tokens may be fewer than it takes.
    ///
    /// # Errors
    ///
    /// If the form cannot be followed, or the model has no tokenizer or no token that ends a text.
    pub fn grammar(&self, spec: &GrammarSpec) -> Result<SharedForm, Error> {
        let grammar = Grammar::new(spec, self.vocabulary()?, &GrammarLimits::default())?;
        Ok(SharedForm::new(grammar))
    }

    fn vocabulary(&self) -> Result<&Arc<Vocabulary>, Error> {
        let shared = self.shared();
        if let Some(vocabulary) = shared.vocabulary.get() {
            return Ok(vocabulary);
        }
        let vocabulary = Vocabulary::new(&**self.tokenizer()?, &shared.eos_tokens)?;
        Ok(shared.vocabulary.get_or_init(|| Arc::new(vocabulary)))
    }
}
