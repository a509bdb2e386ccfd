//! Context strategies from JavaScript values.

use serde::Deserialize;
use setun::{SharedContextStrategy, SinksAndWindow, TruncateMiddle};
use wasm_bindgen::JsValue;

use crate::error::bad_option;

/// A strategy as JavaScript has it.
#[derive(Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum JsStrategy {
    TruncateMiddle { keep: usize, room: usize },
    SlidingWindow { sinks: usize, window: usize },
}

/// The strategy of the option `contextStrategy`; none for `"stop"`, the default.
pub(crate) fn strategy(given: JsValue) -> Result<Option<SharedContextStrategy>, JsValue> {
    if given.is_undefined() || given == "stop" {
        return Ok(None);
    }
    match serde_wasm_bindgen::from_value(given) {
        Ok(JsStrategy::TruncateMiddle { keep: first, room }) => {
            Ok(Some(SharedContextStrategy::new(TruncateMiddle { first, room })))
        }
        Ok(JsStrategy::SlidingWindow { sinks, window }) => {
            Ok(Some(SharedContextStrategy::new(SinksAndWindow { sinks, window })))
        }
        Err(error) => Err(bad_option(&format!("option `contextStrategy`: {error}"))),
    }
}
