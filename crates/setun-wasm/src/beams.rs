//! The likeliest texts after a prompt.

use std::cell::RefCell;

use js_sys::Promise;
use serde::{Deserialize, Serialize};
use setun::{BeamGeneration, BeamOptions, BeamText, CancelHandle, FinishReason};
use wasm_bindgen::prelude::*;

use crate::{
    error::{bad_option, to_js},
    model::{Model, read_prompt},
    options,
};

/// [`BeamOptions`] in camel case; `earlyStopping` is `true`, `false` or `never`, as a text.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Given {
    beams: usize,
    best: usize,
    length_penalty: f64,
    early_stopping: String,
    groups: usize,
    diversity_penalty: f32,
}

/// [`BeamText`] in camel case.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Found {
    text: String,
    tokens: Vec<u32>,
    score: f64,
    finish_reason: FinishReason,
    #[serde(skip_serializing_if = "Option::is_none")]
    stop: Option<String>,
}

/// A beam search under way. Freeing it ends it.
#[wasm_bindgen]
pub struct BeamSearch {
    search: RefCell<Option<BeamGeneration>>, // until its texts are asked for
    cancel: CancelHandle,
}

#[wasm_bindgen]
impl Model {
    /// Searches for the likeliest texts after a prompt. `beams` is `{beams, best, lengthPenalty,
    /// earlyStopping, groups, diversityPenalty}`, `options` are those of `generate` that a search
    /// knows.
    ///
    /// # Errors
    ///
    /// As `generate`; also if an option of the beams is out of its range.
    pub fn beams(
        &self,
        prompt: JsValue,
        beams: JsValue,
        options: JsValue,
    ) -> Result<BeamSearch, JsValue> {
        let prompt = read_prompt(prompt)?;
        let given: Given = serde_wasm_bindgen::from_value(beams)
            .map_err(|error| bad_option(&error.to_string()))?;
        let beams = BeamOptions {
            beams: given.beams,
            length_penalty: given.length_penalty,
            early_stopping: given.early_stopping.parse().map_err(|error| to_js(&error))?,
            best: given.best,
            groups: given.groups,
            diversity_penalty: given.diversity_penalty,
        };
        let options = options::parse(options, self.0.vocab_size())?;
        let search = self.0.beams(prompt, beams, options).map_err(|error| to_js(&error))?;
        let cancel = search.cancel_handle();
        Ok(BeamSearch { search: RefCell::new(Some(search)), cancel })
    }
}

impl Drop for BeamSearch {
    fn drop(&mut self) {
        // A pending `texts` keeps the search; it ends all the same.
        self.cancel.cancel();
    }
}

#[wasm_bindgen]
impl BeamSearch {
    /// What was found at the end, the best first: `[{text, tokens, score, finishReason, stop?},
    /// …]`. To be called once. Rejects if the search fails.
    pub fn texts(&self) -> Promise {
        let search = self.search.take();
        wasm_bindgen_futures::future_to_promise(async move {
            let search = search.ok_or_else(|| to_js(&setun::Error::Disposed))?;
            let found = search.await.map_err(|error| to_js(&error))?;
            let texts: Vec<Found> = found.texts.into_iter().map(Found::from).collect();
            Ok(serde_wasm_bindgen::to_value(&texts)?)
        })
    }

    /// Ends the search, which then gives what it has.
    pub fn stop(&self) {
        self.cancel.cancel();
    }
}

impl From<BeamText> for Found {
    fn from(found: BeamText) -> Self {
        let BeamText { text, tokens, score, finish_reason, stop } = found;
        Self { text, tokens, score, finish_reason, stop }
    }
}
