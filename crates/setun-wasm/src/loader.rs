//! `Loader`: asks for bytes and becomes a `Model`.

use serde::{Deserialize, Serialize};
use setun::{Device, Engine, Source};
use wasm_bindgen::prelude::*;

use crate::{
    error::{bad_option, to_js},
    model::Model,
    pace::Pace,
};

/// Loads a model from wherever JavaScript finds its bytes.
#[wasm_bindgen]
pub struct Loader(setun::Loader);

/// The bytes that come next.
#[derive(Serialize)]
struct Want {
    file: String,
    start: Option<u64>,
    end: Option<u64>,
    required: bool,
}

/// Where to run.
#[derive(Default, Deserialize)]
#[serde(default)]
struct FinishOptions {
    backend: Option<String>,
    threads: Option<usize>,
}

#[wasm_bindgen]
impl Loader {
    /// `kind` is `folder` or `file`; `name` is the file's name and what the model is reported by.
    ///
    /// # Errors
    ///
    /// `bad-option` for another kind.
    #[wasm_bindgen(constructor)]
    pub fn new(kind: &str, name: &str) -> Result<Loader, JsValue> {
        let source = match kind {
            "folder" => Source::Folder,
            "file" => Source::File(name.to_owned()),
            _ => return Err(bad_option(&format!("kind is {kind}, expected folder or file"))),
        };
        Ok(Self(setun::Loader::new(source, name)))
    }

    /// `{file, start?, end?, required}`, or `undefined` when all bytes are there.
    ///
    /// # Errors
    ///
    /// None that a caller can cause.
    pub fn want(&self) -> Result<JsValue, JsValue> {
        let Some(want) = self.0.want() else { return Ok(JsValue::UNDEFINED) };
        let (start, end) = want.range.map_or((None, None), |r| (Some(r.start), Some(r.end)));
        let want = Want { file: want.file, start, end, required: want.required };
        Ok(serde_wasm_bindgen::to_value(&want)?)
    }

    /// Bytes of all tensors, once they are known.
    #[wasm_bindgen(getter, js_name = totalBytes)]
    #[must_use]
    #[expect(
        clippy::cast_precision_loss,
        reason = "a JavaScript number; files are below 2^53 bytes"
    )]
    pub fn total_bytes(&self) -> Option<f64> {
        self.0.total_bytes().map(|bytes| bytes as f64)
    }

    /// The bytes that were wanted, fewer where the file ends, `undefined` where there is none.
    ///
    /// # Errors
    ///
    /// If the checkpoint is missing something, damaged, or not one that can be run.
    #[expect(clippy::needless_pass_by_value, reason = "wasm-bindgen owns what it converts")]
    pub fn give(&mut self, bytes: Option<Vec<u8>>) -> Result<(), JsValue> {
        self.0.give(bytes.as_deref()).map_err(|error| to_js(&error))
    }

    /// The model, on its device. `options` is `{backend?, threads?}`.
    ///
    /// # Errors
    ///
    /// If bytes are missing, or the backend is not here.
    pub async fn finish(self, options: JsValue) -> Result<Model, JsValue> {
        let options: FinishOptions = if options.is_undefined() {
            FinishOptions::default()
        } else {
            serde_wasm_bindgen::from_value(options).map_err(|e| bad_option(&e.to_string()))?
        };
        let device: Device =
            options.backend.as_deref().unwrap_or("auto").parse().map_err(|e| to_js(&e))?;
        let mut builder =
            Engine::builder(self.0.finish().map_err(|error| to_js(&error))?).device(device);
        if let Some(threads) = options.threads {
            builder = builder.threads(threads);
        }
        let mut pace = Pace::new();
        let (engine, owner) =
            builder.build_local(move || pace.pause()).await.map_err(|error| to_js(&error))?;
        wasm_bindgen_futures::spawn_local(owner);
        Ok(Model::new(engine))
    }
}
