//! Memory that a model gives back.

use setun::Pressure;
use wasm_bindgen::prelude::*;

use crate::{error::to_js, model::Model};

#[wasm_bindgen]
impl Model {
    /// Gives memory back where it is short: `moderate` or, with true, `critical`. The promise has
    /// the bytes of the cache that it came to.
    pub fn relieve(&self, is_critical: bool) -> js_sys::Promise {
        let pressure = if is_critical { Pressure::Critical } else { Pressure::Moderate };
        // The model may be freed meanwhile.
        let relieved = self.0.relieve(pressure);
        wasm_bindgen_futures::future_to_promise(async move {
            let bytes = relieved.await.map_err(|error| to_js(&error))?;
            Ok(u32::try_from(bytes).unwrap_or(u32::MAX).into())
        })
    }
}
