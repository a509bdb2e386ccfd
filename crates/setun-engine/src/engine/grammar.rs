//! Compilation of grammars for an engine's model.

use std::sync::Arc;

use setun_grammar::{Grammar, GrammarLimits, GrammarSpec, Interrupt, Vocabulary};

use super::Engine;
use crate::{constraint::SharedConstraint, error::Error};

impl Engine {
    /// Compiles a form for this model, to be given to any number of generations
    /// ([`GenerateOptions::constraint`](crate::GenerateOptions::constraint)). Texts have it from their first
    /// token to their last, unless they end before: the most tokens may be fewer than it takes.
    ///
    /// It has as much time as the engine's default timeout gives a generation.
    ///
    /// # Errors
    ///
    /// If the form cannot be followed or compiled in its time, or the model has no tokenizer or no
    /// token that ends a text.
    pub fn grammar(&self, spec: &GrammarSpec) -> Result<SharedConstraint, Error> {
        let interrupt = Interrupt::new();
        self.compile_grammar(
            spec,
            &match self.shared().defaults.timeout {
                Some(time) => interrupt.within(time),
                None => interrupt,
            },
        )
    }

    /// The same, until it is interrupted: at a deadline, or when another thread cancels it.
    ///
    /// # Errors
    ///
    /// As [`grammar`](Self::grammar); also if it was interrupted.
    pub fn compile_grammar(
        &self,
        spec: &GrammarSpec,
        interrupt: &Interrupt,
    ) -> Result<SharedConstraint, Error> {
        let limits = GrammarLimits::default();
        let grammar = Grammar::compile(spec, self.vocabulary()?, &limits, interrupt)?;
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
