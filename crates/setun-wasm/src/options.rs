//! Options from JavaScript objects.

use js_sys::{Array, Object};
use serde::de::DeserializeOwned;
use setun::{
    BeamOptions, EngineConfig, GenerateOptions,
    text::{OptionValue, ToolChoice},
};
use wasm_bindgen::{JsCast, JsValue};

use crate::{
    content_filter::filter,
    context_strategy,
    error::{bad_option, to_js},
    processors,
};

/// Reads options of a model with `vocabulary` tokens; unknown ones are refused by name.
pub(crate) fn parse(given: &JsValue, vocabulary: usize) -> Result<GenerateOptions, JsValue> {
    let mut options = GenerateOptions::new();
    for (key, value) in entries(given) {
        match key.as_str() {
            "filter" => options.filter = Some(filter(read(&key, value)?)?),
            #[cfg(target_family = "wasm")]
            "grammar" => options.constraint = crate::grammar::constraint(value),
            "contextOverflow" => options.context_overflow = context_strategy::strategy(value)?,
            "logitsProcessors" => options.logits_processors = processors::read(&value, vocabulary)?,
            "chatTemplateKwargs" => options.chat_template_kwargs = Some(read(&key, value)?),
            "timeout" | "queueTimeout" => {
                let time = seconds(read(&key, value)?);
                options.set(&snake_case(&key), &time).map_err(to_js)?;
            }
            "tools" => {
                let read = ToolChoice::read_request(&read::<String>(&key, value)?);
                let (tools, choice, _) = read.map_err(|error| bad_option(&error.to_string()))?;
                (options.tools, options.tool_choice) = (tools, Some(choice));
            }
            _ => options.set(&snake_case(&key), &read(&key, value)?).map_err(to_js)?,
        }
    }
    Ok(options)
}

/// Reads options of a beam search.
pub(crate) fn parse_beams(given: &JsValue) -> Result<BeamOptions, JsValue> {
    let mut options = BeamOptions::default();
    for (key, value) in entries(given) {
        options.set(&snake_case(&key), &read(&key, value)?).map_err(to_js)?;
    }
    Ok(options)
}

/// Reads options of an engine and its device.
pub(crate) fn parse_config(given: &JsValue) -> Result<EngineConfig, JsValue> {
    let mut config = EngineConfig::default();
    for (key, value) in entries(given) {
        match key.as_str() {
            "backend" => {
                let name: String = read(&key, value)?;
                config.device.backends = vec![name.parse().map_err(to_js)?];
            }
            _ => config.set(&snake_case(&key), &read(&key, value)?).map_err(to_js)?,
        }
    }
    Ok(config)
}

/// The properties of an object that are not undefined.
fn entries(given: &JsValue) -> Vec<(String, JsValue)> {
    let entries = given.dyn_ref::<Object>().map(Object::entries).unwrap_or_default();
    let entry = |entry: JsValue| {
        let entry: Array = entry.unchecked_into();
        (entry.get(0).as_string().unwrap_or_default(), entry.get(1))
    };
    entries.iter().map(entry).filter(|(_, value)| !value.is_undefined()).collect()
}

fn read<T: DeserializeOwned>(key: &str, value: JsValue) -> Result<T, JsValue> {
    let read = serde_wasm_bindgen::from_value(value);
    read.map_err(|error| bad_option(&format!("option `{key}`: {error}")))
}

/// A time, of which JavaScript gives milliseconds.
fn seconds(given: OptionValue) -> OptionValue {
    given.double().map_or(given, |milliseconds| OptionValue::Number(milliseconds / 1e3))
}

fn snake_case(key: &str) -> String {
    let mut name = String::with_capacity(key.len() + 8);
    for letter in key.chars() {
        if letter.is_ascii_uppercase() {
            name.push('_');
        }
        name.push(letter.to_ascii_lowercase());
    }
    name
}
