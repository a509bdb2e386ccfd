//! Scoring and classification.

use js_sys::Promise;
use serde::Serialize;
use wasm_bindgen::prelude::*;

use crate::{
    error::to_js,
    events::Delta,
    model::{Model, read_prompt},
    promise::promise,
};

/// [`setun::Score`] in camel case.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Score {
    tokens: Vec<Delta>,
    logprob: f64,
    mean_logprob: f64,
}

/// [`setun::Classification`].
#[derive(Serialize)]
struct Classification {
    best: usize,
    probabilities: Vec<f64>,
    scores: Vec<Score>,
}

#[wasm_bindgen]
impl Model {
    /// Scores each label as the continuation of a prompt: `{best, probabilities, scores: [{tokens,
    /// logprob, meanLogprob}, …]}`.
    ///
    /// # Errors
    ///
    /// If the prompt cannot be read. Other errors reject.
    pub fn classify(&self, prompt: JsValue, labels: Vec<String>) -> Result<Promise, JsValue> {
        // The model may be freed meanwhile.
        let (engine, prompt) = (self.0.clone(), read_prompt(prompt)?);
        Ok(promise(async move {
            let found = engine.classify(prompt, &labels).await.map_err(to_js)?;
            let classification = Classification {
                best: found.best,
                probabilities: found.probabilities,
                scores: found.scores.into_iter().map(Score::from).collect(),
            };
            Ok(serde_wasm_bindgen::to_value(&classification)?)
        }))
    }
}

impl From<setun::Score> for Score {
    fn from(score: setun::Score) -> Self {
        let mean_logprob = score.mean_logprob();
        let tokens = score.tokens.into_iter().map(Delta::from).collect();
        Self { tokens, logprob: score.logprob, mean_logprob }
    }
}
