//! Grammars as forms.

use setun_grammar::{Constraint, Grammar};
use setun_text::TokenMask;

use super::{Form, FormState};
use crate::error::Error;

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
