//! `Loader`: reads a model and moves it to its device.

use setun::{
    Device, DeviceOptions, Engine, EngineConfig, GpuApi, ModelHeader, ModelReader, ModelSource,
    Source,
    checkpoint::{CheckpointError, Options},
    text::OptionValue,
};
use wasm_bindgen::prelude::*;

use crate::{
    device_report::DeviceReport,
    error::{bad_option, to_js},
    event_loop::EventLoop,
    files::{Bytes, Files},
    model::Model,
    options,
};

/// A model whose files are read except for the weights, or its headers alone.
#[wasm_bindgen]
pub struct Loader {
    header: ModelHeader,
    reader: Option<ModelReader>,
}

#[wasm_bindgen]
impl Loader {
    /// Reads all but the weights. `kind` is `folder`, `file`, or `tensors` for the list that another
    /// module has of a file; `name` is the file's name and the model's. With `headers_only` it reads only what [`estimate`](Self::estimate) needs.
    /// `pretokenizer` is how a GGUF file's tokenizer splits text.
    ///
    /// # Errors
    ///
    /// `bad-option` for another kind or name. `network` if `files` throws, with its message. If the
    /// checkpoint is incomplete, damaged or not supported.
    pub async fn open(
        kind: String,
        name: String,
        files: Files,
        headers_only: Option<bool>,
        pretokenizer: Option<String>,
    ) -> Result<Loader, JsValue> {
        let source = match kind.as_str() {
            "folder" => Source::Folder,
            "file" => Source::File(name.clone()),
            "tensors" => Source::Tensors(name.clone()),
            _ => return Err(bad_option(&format!("kind is {kind}, expected folder or file"))),
        };
        let pretokenizer = pretokenizer.map(|name| name.parse()).transpose();
        let pretokenizer =
            pretokenizer.map_err(|error: CheckpointError| bad_option(&error.to_string()))?;
        let options = Options { pretokenizer, ..Options::default() };
        let source = ModelSource::new(source, name, Bytes(files)).with_options(options);
        if headers_only.unwrap_or(false) {
            let header = ModelHeader::read(source).await.map_err(to_js)?;
            return Ok(Self { header, reader: None });
        }
        let reader = ModelReader::new(source).await.map_err(to_js)?;
        Ok(Self { header: reader.header().clone(), reader: Some(reader) })
    }

    /// Bytes of all tensors.
    #[wasm_bindgen(getter, js_name = totalBytes)]
    #[must_use]
    #[expect(
        clippy::cast_precision_loss,
        reason = "a JavaScript number; files are below 2^53 bytes"
    )]
    pub fn total_bytes(&self) -> f64 {
        self.header.total_bytes() as f64
    }

    /// Whether only processors compute it.
    #[wasm_bindgen(getter, js_name = needsProcessor)]
    #[must_use]
    pub fn needs_processor(&self) -> bool {
        self.header.needs_processor()
    }

    /// Memory on a CPU or a GPU: tokens of a whole context, then bytes of the weights, the KV cache
    /// of one context, the step buffers, the largest weight, the largest buffer that is not split,
    /// the total, and the recurrent state of one sequence. `head_type` is how the head is kept; without it `auto`.
    ///
    /// # Errors
    ///
    /// `bad-option` for another `head_type`; `backend-unavailable` if no GPU computes the model.
    #[expect(
        clippy::cast_precision_loss,
        reason = "JavaScript numbers; memory is below 2^53 bytes"
    )]
    pub fn estimate(&self, on_gpu: bool, head_type: Option<String>) -> Result<Vec<f64>, JsValue> {
        let device = if on_gpu { Device::Gpu(GpuApi::WebGpu) } else { Device::Cpu };
        let mut config = EngineConfig::default();
        if let Some(name) = head_type {
            config.set("head_type", &OptionValue::Text(name)).map_err(to_js)?;
        }
        let options = DeviceOptions { device, ..config.device_options() };
        let found = self.header.estimate(options).map_err(to_js)?;
        let [context, weights, cache, steps] =
            [found.context, found.weights, found.cache, found.steps];
        let others = [found.largest_weight, found.largest_buffer, found.total(), found.state];
        let all = [context, weights, cache, steps].into_iter().chain(others);
        Ok(all.map(|number| number as f64).collect())
    }

    /// The device that would run, and the reason: `{devices: [{device, level, verdict, reason,
    /// layerMicroseconds?}, …]}`. `options` is `{backend?, threads?}`.
    ///
    /// # Errors
    ///
    /// If the backend is unavailable.
    pub async fn probe(&self, options: &JsValue) -> Result<JsValue, JsValue> {
        let options = options::parse_config(options)?.device_options();
        let reader = self.reader.as_ref().ok_or_else(headers_alone)?;
        let report = reader.probe(options).await.map_err(to_js)?;
        Ok(serde_wasm_bindgen::to_value(&DeviceReport::from(&report))?)
    }

    /// The model on its device; each weight is moved there as it is read. `options` is `{backend?,
    /// threads?, contexts?, maxConcurrent?, queue?, headType?, activationGroup?}`. `draft` is a smaller model with the
    /// same vocabulary for speculative decoding.
    ///
    /// # Errors
    ///
    /// If bytes are missing, the backend is unavailable, or the draft has another vocabulary.
    pub async fn finish(self, options: &JsValue, draft: Option<Loader>) -> Result<Model, JsValue> {
        let reader = self.reader.ok_or_else(headers_alone)?;
        let mut builder = Engine::builder(reader).config(options::parse_config(options)?);
        if let Some(draft) = draft {
            builder = builder.draft(draft.reader.ok_or_else(headers_alone)?);
        }
        let event_loop = EventLoop::new();
        let (engine, owner) =
            builder.build_local(move |time| event_loop.pause(time)).await.map_err(to_js)?;
        wasm_bindgen_futures::spawn_local(owner);
        Ok(Model::new(engine))
    }
}

fn headers_alone() -> JsValue {
    bad_option("headers_only was true, expected false where the model is to run")
}
