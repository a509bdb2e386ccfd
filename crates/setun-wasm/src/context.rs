//! What becomes of a text that outgrows the context, from a JavaScript value.

use serde::Deserialize;
use setun::{SharedContextStrategy, SinksAndWindow, TruncateMiddle};
use wasm_bindgen::JsValue;

use crate::error::bad_option;

/// `{keep, room}` or `{sinks, window}`.
#[derive(Deserialize)]
struct Kept {
    keep: Option<usize>,
    room: Option<usize>,
    sinks: Option<usize>,
    window: Option<usize>,
}

/// The strategy that is asked for; none where the text ends: `"stop"`, or nothing.
pub(crate) fn strategy(given: JsValue) -> Result<Option<SharedContextStrategy>, JsValue> {
    if given.is_undefined() || given == "stop" {
        return Ok(None);
    }
    match serde_wasm_bindgen::from_value(given) {
        Ok(Kept { keep: Some(first), room: Some(room), sinks: None, window: None }) => {
            Ok(Some(SharedContextStrategy::new(TruncateMiddle { first, room })))
        }
        Ok(Kept { keep: None, room: None, sinks: Some(sinks), window: Some(window) }) => {
            Ok(Some(SharedContextStrategy::new(SinksAndWindow { sinks, window })))
        }
        _ => {
            Err(bad_option("option `context`: expected \"stop\", {keep, room} or {sinks, window}"))
        }
    }
}
