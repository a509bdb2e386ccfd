//! Embeddings.

use js_sys::{Array, Float32Array, Promise};
use setun::Pooling;
use wasm_bindgen::prelude::*;

use crate::{error::to_js, model::Model};

#[wasm_bindgen]
impl Model {
    /// A `Float32Array` for each text, and then the number of tokens of all. Rejects with the error
    /// of the first text that has one.
    pub fn embed(&self, texts: Vec<String>, is_mean: bool, is_normalized: bool) -> Promise {
        // The model may be freed meanwhile.
        let engine = self.0.clone();
        wasm_bindgen_futures::future_to_promise(async move {
            let pooling = if is_mean { Pooling::Mean } else { Pooling::Last };
            let (found, mut tokens) = (Array::new(), 0);
            for embedding in engine.embed(texts, pooling, is_normalized).await {
                let embedding = embedding.map_err(to_js)?;
                tokens += embedding.tokens;
                found.push(&Float32Array::from(&embedding.values[..]));
            }
            found.push(&tokens.into());
            Ok(found.into())
        })
    }
}
