//! Options of a generation, from a JavaScript object.

use js_sys::{Object, Reflect};
use serde::Deserialize;
use setun::GenerateOptions;
use wasm_bindgen::{JsCast, JsValue};

use crate::error::bad_option;

const NAMES: [&str; 9] = [
    "maxTokens",
    "temperature",
    "topK",
    "topP",
    "minP",
    "repetitionPenalty",
    "seed",
    "stop",
    "logprobs",
];

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Options {
    max_tokens: Option<usize>,
    temperature: Option<f32>,
    top_k: Option<usize>,
    top_p: Option<f32>,
    min_p: Option<f32>,
    repetition_penalty: Option<f32>,
    seed: Option<u64>,
    stop: Option<Vec<String>>,
    logprobs: Option<bool>,
}

/// Reads options; unknown ones are refused by name.
pub(crate) fn parse(options: JsValue) -> Result<GenerateOptions, JsValue> {
    if options.is_undefined() {
        return Ok(GenerateOptions::new());
    }
    if let Some(object) = options.dyn_ref::<Object>() {
        for key in Object::keys(object).iter().filter_map(|key| key.as_string()) {
            let given = Reflect::get(object, &key.as_str().into())?;
            if !NAMES.contains(&key.as_str()) && !given.is_undefined() {
                let names = NAMES.join(", ");
                return Err(bad_option(&format!("unknown option `{key}`, expected {names}")));
            }
        }
    }
    let read: Options =
        serde_wasm_bindgen::from_value(options).map_err(|error| bad_option(&error.to_string()))?;
    let mut options = GenerateOptions::new().logprobs(read.logprobs.unwrap_or(false));
    options.max_tokens = read.max_tokens;
    options.temperature = read.temperature;
    options.top_k = read.top_k;
    options.top_p = read.top_p;
    options.min_p = read.min_p;
    options.repetition_penalty = read.repetition_penalty;
    options.seed = Some(read.seed.unwrap_or_else(random_seed));
    options.stop = read.stop.unwrap_or_default();
    Ok(options)
}

/// A seed that a JavaScript number holds. Not for secrets.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "an integer in 0..2^53"
)]
fn random_seed() -> u64 {
    (js_sys::Math::random() * 9_007_199_254_740_992.0) as u64
}
