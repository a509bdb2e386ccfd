//! `Constraint`: where one text is in its grammar.

use wasm_bindgen::prelude::*;

use crate::error::to_js;

/// The state of one text that follows a grammar.
#[wasm_bindgen]
pub struct Constraint(pub(crate) setun_grammar::Constraint);

#[wasm_bindgen]
impl Constraint {
    /// The tokens that may come next (`Uint32Array`): a bit each, the lowest of a word first.
    ///
    /// # Errors
    ///
    /// If none may.
    pub fn mask(&mut self) -> Result<Vec<u32>, JsValue> {
        let mask = self.0.mask().map_err(|error| to_js(&error))?;
        Ok(mask.words().to_vec())
    }

    /// Takes a token.
    ///
    /// # Errors
    ///
    /// If it may not come.
    pub fn accept(&mut self, token: u32) -> Result<(), JsValue> {
        self.0.accept(token).map_err(|error| to_js(&error))
    }
}
