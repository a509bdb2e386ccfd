//! What becomes of a text that outgrows the context, from a JavaScript value.

use serde::Deserialize;
use setun::{SharedContextStrategy, SinksAndWindow, TruncateMiddle};
use wasm_bindgen::JsValue;

use crate::error::bad_option;

/// `"stop"`, `{keep, room}` or `{sinks, window}`.
#[derive(Deserialize)]
#[serde(untagged)]
pub(crate) enum WhenFull {
    Named(String),
    Truncate { keep: usize, room: usize },
    Slide { sinks: usize, window: usize },
}

impl WhenFull {
    /// The strategy; none where the text ends.
    pub(crate) fn strategy(self) -> Result<Option<SharedContextStrategy>, JsValue> {
        match self {
            Self::Named(name) if name == "stop" => Ok(None),
            Self::Named(name) => {
                let expected = "\"stop\", {keep, room} or {sinks, window}";
                Err(bad_option(&format!("option `context`: expected {expected}, found \"{name}\"")))
            }
            Self::Truncate { keep, room } => {
                Ok(Some(SharedContextStrategy::new(TruncateMiddle { first: keep, room })))
            }
            Self::Slide { sinks, window } => {
                Ok(Some(SharedContextStrategy::new(SinksAndWindow { sinks, window })))
            }
        }
    }
}
