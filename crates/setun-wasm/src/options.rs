//! Options of a generation, from a JavaScript object.

use js_sys::{Array, Object};
use serde::de::DeserializeOwned;
use setun::{GenerateOptions, text::OptionValue};
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
    let entries = given.dyn_ref::<Object>().map(Object::entries).unwrap_or_default();
    for entry in entries.iter() {
        let entry: Array = entry.unchecked_into();
        let (key, value) = (entry.get(0).as_string().unwrap_or_default(), entry.get(1));
        if value.is_undefined() {
            continue;
        }
        match key.as_str() {
            "filter" => options.filter = Some(filter(read(&key, value)?)?),
            #[cfg(target_family = "wasm")]
            "grammar" => options.constraint = crate::grammar::constraint(value),
            "contextStrategy" => options.context_strategy = context_strategy::strategy(value)?,
            "processors" => options = processors::add(&value, vocabulary, options)?,
            "deadline" => set(&mut options, &key, &seconds(read(&key, value)?))?,
            _ => set(&mut options, &key, &read(&key, value)?)?,
        }
    }
    Ok(options)
}

fn set(options: &mut GenerateOptions, key: &str, value: &OptionValue) -> Result<(), JsValue> {
    let name = snake_case(key);
    if !GenerateOptions::NAMES.contains(&name.as_str()) {
        return Err(bad_option(&format!("there is no option `{key}`")));
    }
    options.set(&name, value).map_err(to_js)
}

fn read<T: DeserializeOwned>(key: &str, value: JsValue) -> Result<T, JsValue> {
    let read = serde_wasm_bindgen::from_value(value);
    read.map_err(|error| bad_option(&format!("option `{key}`: {error}")))
}

/// A time, of which JavaScript gives milliseconds.
fn seconds(given: OptionValue) -> OptionValue {
    given.seconds().map_or(given, |milliseconds| OptionValue::Number(milliseconds / 1e3))
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
