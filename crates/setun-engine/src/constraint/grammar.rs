//! Grammars as constraints.

use setun_grammar::{Constraint as GrammarState, Grammar, GrammarSpec};
use setun_text::TokenMask;

use super::{Constraint, ConstraintState};
use crate::error::Error;

impl Constraint for Grammar {
    fn begin(&self) -> Box<dyn ConstraintState> {
        Box::new(GrammarState::new(self))
    }

    fn warnings(&self) -> Vec<String> {
        self.notes().iter().map(ToString::to_string).collect()
    }

    fn grammar(&self) -> Option<&GrammarSpec> {
        Some(self.spec())
    }
}

impl ConstraintState for GrammarState {
    fn prepare(&mut self) {
        let _ = GrammarState::mask(self); // which keeps it, and an error comes again
    }

    fn mask(&mut self) -> Result<&TokenMask, Error> {
        Ok(GrammarState::mask(self)?)
    }

    fn accept(&mut self, token: u32) -> Result<(), Error> {
        Ok(GrammarState::accept(self, token)?)
    }

    fn set_tokens_left(&mut self, tokens: usize) {
        GrammarState::set_tokens_left(self, tokens);
    }

    fn may_end(&mut self) -> Result<bool, Error> {
        Ok(GrammarState::is_accepting(self)?)
    }
}
