//! Metrics and memory of an engine, with JavaScript names.

use js_sys::{Object, Promise, Reflect};
use setun::{EngineMetrics, Histogram, Pressure, TimeHistogram};
use wasm_bindgen::prelude::*;

use crate::{error::to_js, model::Model, promise::promise};

/// Names of the reported quantiles.
const QUANTILES: [(&str, f64); 3] = [("p50", 0.5), ("p90", 0.9), ("p99", 0.99)];

#[wasm_bindgen]
impl Model {
    /// The metrics after the current step: `{steps, rows, …}`.
    pub fn metrics(&self) -> Promise {
        // The model may be freed meanwhile.
        let engine = self.0.clone();
        promise(async move {
            let metrics = engine.metrics().await.map_err(to_js)?;
            all(&metrics)
        })
    }

    /// Drops all cached prefixes that no generation uses.
    ///
    /// # Errors
    ///
    /// If the engine has ended.
    #[wasm_bindgen(js_name = resetPrefixCache)]
    pub fn reset_prefix_cache(&self) -> Result<(), JsValue> {
        self.0.reset_prefix_cache().map_err(to_js)
    }

    /// Releases memory at `moderate` or, with true, at `critical` pressure. The promise has the
    /// released bytes of the KV cache.
    #[wasm_bindgen(js_name = releaseMemory)]
    pub fn release_memory(&self, is_critical: bool) -> Promise {
        let pressure = if is_critical { Pressure::Critical } else { Pressure::Moderate };
        // The model may be freed meanwhile.
        let released = self.0.release_memory(pressure);
        promise(async move {
            let bytes = released.await.map_err(to_js)?;
            Ok(u32::try_from(bytes).unwrap_or(u32::MAX).into())
        })
    }
}

/// [`EngineMetrics`] in camel case; times are milliseconds.
fn all(metrics: &EngineMetrics) -> Result<JsValue, JsValue> {
    let counts = [
        ("steps", metrics.steps),
        ("rows", metrics.rows),
        ("promptRows", metrics.prompt_rows),
        ("admissions", metrics.admissions),
        ("prefixHits", metrics.prefix_hits),
        ("cachedPromptTokens", metrics.cached_prompt_tokens),
        ("drafts", metrics.drafts),
        ("draftTokens", metrics.draft_tokens),
        ("acceptedTokens", metrics.accepted_tokens),
        ("preemptions", metrics.preemptions),
        ("preemptedTokens", metrics.preempted_tokens),
        ("tokens", metrics.tokens),
        ("finished", metrics.finished),
        ("aborted", metrics.aborted),
        ("timedOut", metrics.timed_out),
        ("failed", metrics.failed),
    ];
    let sizes = [
        ("waiting", metrics.waiting),
        ("running", metrics.running),
        ("blocks", metrics.blocks),
        ("usedBlocks", metrics.used_blocks),
        ("cachedBlocks", metrics.cached_blocks),
    ];
    let memory = [
        ("layers", metrics.memory.body),
        ("head", metrics.memory.head),
        ("prefilter", metrics.memory.screen),
        ("kvCache", metrics.memory.cache),
    ];
    let parts = [
        ("queueTime", times(&metrics.queue_time)?),
        ("timeToFirstToken", times(&metrics.time_to_first_token)?),
        ("prefillTime", times(&metrics.prefill_time)?),
        ("decodeTime", times(&metrics.decode_time)?),
        ("interTokenLatency", times(&metrics.inter_token_latency)?),
        ("stepTime", times(&metrics.step_time)?),
        ("stepRows", rows(&metrics.step_rows)?),
        ("memory", object(memory.map(|(name, bytes)| (name, number(bytes as u64))))?),
    ];
    let counts = counts.map(|(name, count)| (name, number(count)));
    let sizes = sizes.map(|(name, size)| (name, number(size as u64)));
    object(counts.into_iter().chain(sizes).chain(parts))
}

fn times(of: &TimeHistogram) -> Result<JsValue, JsValue> {
    let milliseconds = |time: std::time::Duration| 1e3 * time.as_secs_f64();
    summary(of.count(), of.mean().map(milliseconds), |share| of.quantile(share).map(milliseconds))
}

#[expect(clippy::cast_precision_loss, reason = "a step has few rows")]
fn rows(of: &Histogram) -> Result<JsValue, JsValue> {
    summary(of.count(), of.mean(), |share| of.quantile(share).map(|rows| rows as f64))
}

/// `{count, mean, p50, p90, p99}`; all but the count are undefined where there are no values.
fn summary(
    count: u64,
    mean: Option<f64>,
    quantile: impl Fn(f64) -> Option<f64>,
) -> Result<JsValue, JsValue> {
    let counted = [("count", number(count)), ("mean", mean.into())];
    object(counted.into_iter().chain(QUANTILES.map(|(name, share)| (name, quantile(share).into()))))
}

fn object(entries: impl IntoIterator<Item = (&'static str, JsValue)>) -> Result<JsValue, JsValue> {
    let object = Object::new();
    for (name, value) in entries {
        Reflect::set(&object, &name.into(), &value)?;
    }
    Ok(object.into())
}

#[expect(clippy::cast_precision_loss, reason = "a JavaScript number; counts stay below 2^53")]
fn number(count: u64) -> JsValue {
    JsValue::from_f64(count as f64)
}
