//! `Vocabulary`: the tokens of a model.

use std::sync::Arc;

use setun_text::TokenTable;
use wasm_bindgen::prelude::*;

use crate::error::{bad_option, to_js};

/// The vocabulary of a model, shared by its grammars.
#[wasm_bindgen]
pub struct Vocabulary(pub(crate) Arc<setun_grammar::Vocabulary>);

#[wasm_bindgen]
impl Vocabulary {
    /// From the bytes of `Model.tokenTable` in `setun-wasm`.
    ///
    /// # Errors
    ///
    /// If they are damaged, or the vocabulary is not supported.
    #[wasm_bindgen(constructor)]
    pub fn new(table: &[u8]) -> Result<Vocabulary, JsValue> {
        let table = TokenTable::from_bytes(table)
            .ok_or_else(|| bad_option("the table of the model's tokens is damaged"))?;
        let vocabulary = setun_grammar::Vocabulary::from_table(&table);
        Ok(Self(Arc::new(vocabulary.map_err(|error| to_js(&error))?)))
    }
}
