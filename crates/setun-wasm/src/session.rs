//! Sessions. JavaScript keeps a session as its tokens, so it needs no disposal.

use js_sys::{Promise, Uint8Array, Uint32Array};
use setun::{Engine, EngineError, Prompt, Session};
use wasm_bindgen::prelude::*;

use crate::{
    error::to_js,
    model::{Model, read_prompt},
    promise::promise,
};

#[wasm_bindgen]
impl Model {
    /// The tokens of a session with a text or a conversation appended.
    ///
    /// # Errors
    ///
    /// If the model lacks what it needs for them.
    pub fn push(&self, tokens: Vec<u32>, more: JsValue) -> Result<Vec<u32>, JsValue> {
        let more = read_prompt(more)?;
        let pushed = session(&self.0, tokens).and_then(|mut session| {
            session.push_complete(more)?; // JavaScript keeps the messages that wait
            Ok(session.tokens().to_vec())
        });
        pushed.map_err(to_js)
    }

    /// The bytes of a session of these tokens (`Uint8Array`).
    pub fn save(&self, tokens: Vec<u32>) -> Promise {
        // The model may be freed meanwhile.
        let engine = self.0.clone();
        promise(async move {
            let save = async { session(&engine, tokens)?.save().await };
            let bytes = save.await.map_err(to_js)?;
            Ok(Uint8Array::from(bytes.as_slice()).into())
        })
    }

    /// The tokens (`Uint32Array`) of a saved session. Its KV cache is restored.
    pub fn restore(&self, bytes: Vec<u8>) -> Promise {
        let engine = self.0.clone();
        promise(async move {
            let session = engine.restore(bytes).await.map_err(to_js)?;
            Ok(Uint32Array::from(session.tokens()).into())
        })
    }
}

/// The session of these tokens.
fn session(engine: &Engine, tokens: Vec<u32>) -> Result<Session, EngineError> {
    let mut session = engine.session();
    if !tokens.is_empty() {
        session.push_complete(Prompt::Tokens(tokens))?;
    }
    Ok(session)
}
