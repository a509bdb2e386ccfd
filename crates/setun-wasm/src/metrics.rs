//! What an engine counts, with the names that JavaScript uses.

use js_sys::Promise;
use serde::Serialize;
use wasm_bindgen::prelude::*;

use crate::{error::to_js, model::Model};

/// [`setun::EngineMetrics`] in camel case.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Metrics {
    steps: u64,
    rows: u64,
    prompt_rows: u64,
    reused_positions: u64,
    preemptions: u64,
    dropped_positions: u64,
    verifications: u64,
    guessed: u64,
    right: u64,
    waiting: usize,
    running: usize,
    blocks: usize,
    used_blocks: usize,
    idle_blocks: usize,
}

#[wasm_bindgen]
impl Model {
    /// What was counted, after the step under way: `{steps, rows, …}`.
    pub fn metrics(&self) -> Promise {
        // The model may be freed meanwhile.
        let engine = self.0.clone();
        wasm_bindgen_futures::future_to_promise(async move {
            let metrics = engine.metrics().await.map_err(|error| to_js(&error))?;
            Ok(serde_wasm_bindgen::to_value(&Metrics::from(metrics))?)
        })
    }

    /// Forgets what is kept in the cache for prompts that begin as others did.
    ///
    /// # Errors
    ///
    /// If the engine has ended.
    #[wasm_bindgen(js_name = forgetPrefixes)]
    pub fn forget_prefixes(&self) -> Result<(), JsValue> {
        self.0.forget_prefixes().map_err(|error| to_js(&error))
    }
}

impl From<setun::EngineMetrics> for Metrics {
    fn from(metrics: setun::EngineMetrics) -> Self {
        Self {
            steps: metrics.steps,
            rows: metrics.rows,
            prompt_rows: metrics.prompt_rows,
            reused_positions: metrics.reused_positions,
            preemptions: metrics.preemptions,
            dropped_positions: metrics.dropped_positions,
            verifications: metrics.verifications,
            guessed: metrics.guessed,
            right: metrics.right,
            waiting: metrics.waiting,
            running: metrics.running,
            blocks: metrics.blocks,
            used_blocks: metrics.used_blocks,
            idle_blocks: metrics.idle_blocks,
        }
    }
}
