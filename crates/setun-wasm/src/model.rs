//! `Model`: a running engine.

use js_sys::{Promise, Uint32Array};
use serde::Serialize;
use setun::{DeviceKind, Engine, Message, Prompt};
use wasm_bindgen::{JsCast, prelude::*};

use crate::{
    device_report::DeviceReport,
    error::{bad_option, to_js},
    generation::Generation,
    options,
    promise::promise,
};

/// A loaded model.
#[wasm_bindgen]
pub struct Model(pub(crate) Engine);

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Info<'a> {
    name: &'a str,
    backend: DeviceKind,
    level: &'a str,
    threads: usize,
    vocab_size: usize,
    context_length: usize,
    has_chat_template: bool,
    load_seconds: f64,
    weight_bytes: usize,
    warnings: &'a [String],
    defaults: Defaults,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Defaults {
    temperature: f64,
    top_k: usize,
    top_p: f64,
    min_p: f64,
    repetition_penalty: f64,
}

impl Model {
    pub(crate) fn new(engine: Engine) -> Self {
        Self(engine)
    }
}

#[wasm_bindgen]
impl Model {
    /// Properties of the model and of its device.
    ///
    /// # Errors
    ///
    /// None that a caller can cause.
    #[wasm_bindgen(getter)]
    pub fn info(&self) -> Result<JsValue, JsValue> {
        let defaults = self.0.sampling_defaults();
        Ok(serde_wasm_bindgen::to_value(&Info {
            name: self.0.model_name(),
            backend: self.0.backend(),
            level: self.0.level(),
            threads: self.0.threads(),
            vocab_size: self.0.vocab_size(),
            context_length: self.0.context_length(),
            has_chat_template: self.0.has_chat_template(),
            load_seconds: self.0.load_seconds(),
            weight_bytes: self.0.weight_bytes(),
            warnings: self.0.warnings(),
            defaults: Defaults {
                temperature: shortest(defaults.temperature),
                top_k: defaults.top_k,
                top_p: shortest(defaults.top_p),
                min_p: shortest(defaults.min_p),
                repetition_penalty: shortest(defaults.repetition_penalty),
            },
        })?)
    }

    /// The devices that were considered: `{devices: [{device, level, verdict, reason,
    /// layerMicroseconds?}, …]}`.
    ///
    /// # Errors
    ///
    /// None that a caller can cause.
    #[wasm_bindgen(getter, js_name = deviceReport)]
    pub fn device_report(&self) -> Result<JsValue, JsValue> {
        Ok(serde_wasm_bindgen::to_value(&DeviceReport::from(self.0.device_report()))?)
    }

    /// Compares the device with the reference implementation: `{device, level, passed, reason,
    /// seconds}`. Generations continue. Rejects if there is no memory for it.
    #[wasm_bindgen(js_name = selfTest)]
    pub fn self_test(&self) -> Promise {
        // The model may be freed meanwhile.
        let engine = self.0.clone();
        promise(async move {
            let result = engine.self_test().await.map_err(to_js)?;
            Ok(serde_wasm_bindgen::to_value(&result)?)
        })
    }

    /// Continues a text or tokens (`Uint32Array`), or answers a conversation (`[{role, content},
    /// …]`): `count` times, computing the prompt once.
    ///
    /// # Errors
    ///
    /// If an option is wrong, the prompt does not fit, or more requests run and wait than may; of a
    /// conversation also if the model has no chat template, or it refuses the messages.
    pub fn generate(
        &self,
        prompt: JsValue,
        options: &JsValue,
        count: usize,
    ) -> Result<Vec<Generation>, JsValue> {
        let prompt = read_prompt(prompt)?;
        let options = options::parse(options, self.0.vocab_size())?;
        let streams = self.0.generate_many(prompt, options, count).map_err(to_js)?;
        Ok(streams.into_iter().map(Generation::new).collect())
    }

    /// Name of the format of tool calls, for the grammar module.
    #[wasm_bindgen(getter, js_name = toolFormat)]
    #[must_use]
    pub fn tool_format(&self) -> String {
        self.0.tool_format().name.to_owned()
    }

    /// The vocabulary table of the grammar module, as bytes.
    ///
    /// # Errors
    ///
    /// If the model has no tokenizer.
    #[wasm_bindgen(js_name = tokenTable)]
    pub fn token_table(&self) -> Result<Vec<u8>, JsValue> {
        Ok(self.0.token_table().map_err(to_js)?.to_bytes())
    }

    /// Tokens of a text.
    ///
    /// # Errors
    ///
    /// If the model has no tokenizer.
    pub fn tokenize(&self, text: &str) -> Result<Vec<u32>, JsValue> {
        self.0.tokenize(text).map_err(to_js)
    }

    /// Number of tokens of a prompt in a request with these options.
    ///
    /// # Errors
    ///
    /// If an option is wrong, or the prompt cannot be read.
    #[wasm_bindgen(js_name = countTokens)]
    pub fn count_tokens(&self, prompt: JsValue, options: &JsValue) -> Result<usize, JsValue> {
        let options = options::parse(options, self.0.vocab_size())?;
        self.0.count_tokens(read_prompt(prompt)?, &options).map_err(to_js)
    }

    /// Text of tokens.
    ///
    /// # Errors
    ///
    /// If the model has no tokenizer.
    pub fn detokenize(&self, tokens: &[u32]) -> Result<String, JsValue> {
        self.0.detokenize(tokens).map_err(to_js)
    }
}

/// A text, tokens, or a conversation.
pub(crate) fn read_prompt(given: JsValue) -> Result<Prompt, JsValue> {
    if let Some(text) = given.as_string() {
        return Ok(Prompt::Text(text));
    }
    if let Some(tokens) = given.dyn_ref::<Uint32Array>() {
        return Ok(Prompt::Tokens(tokens.to_vec()));
    }
    let messages = serde_wasm_bindgen::from_value(given);
    let messages = messages.map_err(|error| bad_option(&error.to_string()))?;
    Message::from_json(messages).map(Prompt::Chat).map_err(|error| bad_option(&error.to_string()))
}

/// The number that is written like this one: 0.8, not 0.800000011920929.
fn shortest(x: f32) -> f64 {
    x.to_string().parse().unwrap_or_else(|_| x.into())
}
