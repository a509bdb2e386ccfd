//! `BeamSearch`: a running beam search.

use std::cell::RefCell;

use js_sys::Promise;
use serde::Serialize;
use setun::{BeamGeneration, BeamText, CancelHandle, FinishReason};
use wasm_bindgen::prelude::*;

use crate::{
    error::to_js,
    model::{Model, read_prompt},
    options,
    promise::promise,
};

/// [`BeamText`] in camel case.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct JsBeamText {
    text: String,
    tokens: Vec<u32>,
    score: f64,
    finish_reason: FinishReason,
    #[serde(skip_serializing_if = "Option::is_none")]
    stop: Option<String>,
}

/// A running beam search. Freeing it ends it.
#[wasm_bindgen]
pub struct BeamSearch {
    search: RefCell<Option<BeamGeneration>>, // until its texts are requested
    cancel: CancelHandle,
}

#[wasm_bindgen]
impl Model {
    /// Starts a beam search. `beams` has the options of [`setun::BeamOptions`] in camel case,
    /// `options` are those of `generate` that apply to beam search.
    ///
    /// # Errors
    ///
    /// As `generate`; also if an option of the beams is out of range.
    #[wasm_bindgen(js_name = beamSearch)]
    pub fn beam_search(
        &self,
        prompt: JsValue,
        beams: &JsValue,
        options: &JsValue,
    ) -> Result<BeamSearch, JsValue> {
        let prompt = read_prompt(prompt)?;
        let beams = options::parse_beams(beams)?;
        let options = options::parse(options, self.0.vocab_size())?;
        let search = self.0.beams(prompt, beams, options).map_err(to_js)?;
        let cancel = search.cancel_handle();
        Ok(BeamSearch { search: RefCell::new(Some(search)), cancel })
    }
}

impl Drop for BeamSearch {
    fn drop(&mut self) {
        // A pending `texts` owns the search, which has to end all the same.
        self.cancel.cancel();
    }
}

#[wasm_bindgen]
impl BeamSearch {
    /// The texts found, the best first: `[{text, tokens, score, finishReason, stop?}, …]`. Call it
    /// once. Rejects if the search fails.
    pub fn texts(&self) -> Promise {
        let search = self.search.take();
        promise(async move {
            let search = search.ok_or_else(|| to_js(setun::EngineError::Disposed))?;
            let found = search.await.map_err(to_js)?;
            let texts: Vec<JsBeamText> = found.texts.into_iter().map(JsBeamText::from).collect();
            Ok(serde_wasm_bindgen::to_value(&texts)?)
        })
    }

    /// Ends the search, which then returns the best texts so far.
    pub fn stop(&self) {
        self.cancel.cancel();
    }
}

impl From<BeamText> for JsBeamText {
    fn from(found: BeamText) -> Self {
        let BeamText { text, tokens, score, finish_reason, stop } = found;
        Self { text, tokens, score, finish_reason, stop }
    }
}
