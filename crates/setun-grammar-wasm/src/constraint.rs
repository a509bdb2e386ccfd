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

    /// Says how many tokens may still be generated, one that ends the text included.
    #[wasm_bindgen(js_name = setTokensLeft)]
    pub fn set_tokens_left(&mut self, tokens: u32) {
        self.0.set_tokens_left(tokens as usize);
    }

    /// Whether the text may end here.
    ///
    /// # Errors
    ///
    /// If the parser has failed.
    #[wasm_bindgen(js_name = mayEnd)]
    pub fn may_end(&mut self) -> Result<bool, JsValue> {
        self.0.is_accepting().map_err(|error| to_js(&error))
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
