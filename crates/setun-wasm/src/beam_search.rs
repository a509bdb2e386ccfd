//! `BeamSearch`: a running beam search.

use std::cell::RefCell;

use js_sys::Promise;
use serde::{Deserialize, Serialize};
use setun::{BeamGeneration, BeamOptions, BeamText, CancelHandle, EngineError, FinishReason};
use wasm_bindgen::prelude::*;

use crate::{
    error::{bad_option, to_js},
    model::{Model, read_prompt},
    options,
};

/// [`BeamOptions`] with the names of Hugging Face's `generate`; `earlyStopping` is `true`, `false` or
/// `never`, as a string.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct JsBeamOptions {
    num_beams: usize,
    num_return_sequences: usize,
    length_penalty: f64,
    early_stopping: String,
    num_beam_groups: usize,
    diversity_penalty: f32,
}

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
    /// Starts a beam search. `beams` is `{numBeams, numReturnSequences, lengthPenalty,
    /// earlyStopping, numBeamGroups, diversityPenalty}`, `options` are those of `generate` that
    /// apply to beam search.
    ///
    /// # Errors
    ///
    /// As `generate`; also if an option of the beams is out of range.
    #[wasm_bindgen(js_name = beamSearch)]
    pub fn beam_search(
        &self,
        prompt: JsValue,
        beams: JsValue,
        options: &JsValue,
    ) -> Result<BeamSearch, JsValue> {
        let prompt = read_prompt(prompt)?;
        let given: JsBeamOptions = serde_wasm_bindgen::from_value(beams)
            .map_err(|error| bad_option(&error.to_string()))?;
        let beams = BeamOptions {
            beams: given.num_beams,
            length_penalty: given.length_penalty,
            early_stopping: given.early_stopping.parse().map_err(to_js)?,
            best: given.num_return_sequences,
            groups: given.num_beam_groups,
            diversity_penalty: given.diversity_penalty,
        };
        let options = options::parse(options, self.0.vocab_size())?;
        let search = self.0.beams(prompt, beams, options).map_err(|error| to_js(named(error)))?;
        let cancel = search.cancel_handle();
        Ok(BeamSearch { search: RefCell::new(Some(search)), cancel })
    }
}

/// An error with the option's name in JavaScript, in snake case as the others.
fn named(error: EngineError) -> EngineError {
    let EngineError::BadOption { option, found, expected } = error else { return error };
    let option = match option {
        "beams" => "num_beams",
        "best" => "num_return_sequences",
        "groups" => "num_beam_groups",
        other => other,
    };
    EngineError::BadOption { option, found, expected }
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
        wasm_bindgen_futures::future_to_promise(async move {
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
