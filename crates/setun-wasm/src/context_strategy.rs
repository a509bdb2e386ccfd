//! Context strategies from JavaScript values.

use serde::Deserialize;
use setun::{SharedContextStrategy, SinksAndWindow, TruncateMiddle};
use wasm_bindgen::JsValue;

use crate::error::bad_option;

/// A strategy as JavaScript has it: its fields are those of its type.
#[derive(Deserialize)]
struct JsStrategy {
    #[serde(rename = "type")]
    name: String,
    keep: Option<usize>,
    room: Option<usize>,
    sinks: Option<usize>,
    window: Option<usize>,
}

/// The strategy of the option `contextOverflow`; none for `"stop"`, the default.
pub(crate) fn strategy(given: JsValue) -> Result<Option<SharedContextStrategy>, JsValue> {
    if given.is_undefined() || given == "stop" {
        return Ok(None);
    }
    let strategy: JsStrategy = serde_wasm_bindgen::from_value(given)
        .map_err(|error| bad_option(&format!("option `contextOverflow`: {error}")))?;
    match strategy {
        JsStrategy { name, keep: Some(first), room: Some(room), .. }
            if name == "truncate_middle" =>
        {
            Ok(Some(SharedContextStrategy::new(TruncateMiddle { first, room })))
        }
        JsStrategy { name, sinks: Some(sinks), window: Some(window), .. }
            if name == "sliding_window" =>
        {
            Ok(Some(SharedContextStrategy::new(SinksAndWindow { sinks, window })))
        }
        JsStrategy { name, .. } => {
            Err(bad_option(&format!("option `contextOverflow`: `{name}` lacks its numbers")))
        }
    }
}
