//! `Constraint`: the state of one sequence in its grammar.

use wasm_bindgen::prelude::*;

use crate::error::to_js;

/// The state of one sequence that follows a grammar.
#[wasm_bindgen]
pub struct Constraint(pub(crate) setun_grammar::Constraint);

#[wasm_bindgen]
impl Constraint {
    /// The allowed next tokens (`Uint32Array`): one bit per token, the lowest of a word first.
    ///
    /// # Errors
    ///
    /// If no token is allowed.
    pub fn mask(&mut self) -> Result<Vec<u32>, JsValue> {
        let mask = self.0.mask().map_err(|error| to_js(&error))?;
        Ok(mask.words().to_vec())
    }

    /// Accepts a token.
    ///
    /// # Errors
    ///
    /// If the token is not allowed.
    pub fn accept(&mut self, token: u32) -> Result<(), JsValue> {
        self.0.accept(token).map_err(|error| to_js(&error))
    }
}
