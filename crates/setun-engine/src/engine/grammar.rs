//! Compilation of grammars for an engine's model.

use std::sync::Arc;

use setun_grammar::{Grammar, GrammarLimits, GrammarSpec, Vocabulary};

use super::Engine;
use crate::{constraint::SharedConstraint, error::Error};

impl Engine {
    /// Compiles a form for this model, to be given to any number of generations
    /// ([`GenerateOptions::constraint`](crate::GenerateOptions::constraint)). Texts have it from their first
    /// token to their last, unless they end before: the most tokens may be fewer than it takes.
    ///
    /// # Errors
    ///
    /// If the form cannot be followed, or the model has no tokenizer or no token that ends a text.
    pub fn grammar(&self, spec: &GrammarSpec) -> Result<SharedConstraint, Error> {
        let grammar = Grammar::new(spec, self.vocabulary()?, &GrammarLimits::default())?;
        Ok(SharedConstraint::new(grammar))
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
