//! Reads a graph, and the small files of its folder.

use std::collections::VecDeque;

use serde_json::{Map, Value, json};

use super::{item::Item, plan, scan::Scan};
use crate::{
    error::CheckpointError,
    files, json,
    readers::{DataReader, HeaderContents, HeaderReader},
    source::ReadRequest,
    tensor_assembler::TensorAssembler,
};

/// First the small files, then the graph.
#[derive(Debug)]
pub(crate) struct OnnxHeaderReader {
    file: String,
    folder: String, // of the small files, with its slash
    parent: Option<String>,
    ahead: VecDeque<(&'static str, bool)>,
    scan: Scan,
    items: Option<Vec<Item>>, // once the graph is read
}

impl OnnxHeaderReader {
    /// Of a file, of which nothing is read.
    pub(crate) fn new(file: &str) -> Self {
        let folder = file.rfind('/').map_or("", |slash| &file[..=slash]);
        Self {
            file: file.to_owned(),
            folder: folder.to_owned(),
            parent: parent(folder),
            ahead: files::BESIDE.into(),
            scan: Scan::new(file, folder),
            items: None,
        }
    }

    fn accept_beside(
        &mut self,
        name: &'static str,
        bytes: Option<&[u8]>,
        found: &mut HeaderContents,
    ) -> Result<(), CheckpointError> {
        if let Some(bytes) = bytes {
            found.files.insert(name, bytes.to_vec());
        } else if let Some(parent) = self.parent.take() {
            self.folder = parent;
            return Ok(());
        }
        self.parent = None;
        self.ahead.pop_front();
        if name == files::GENERATION_CONFIG {
            parse_config(found)?;
        }
        Ok(())
    }
}

impl HeaderReader for OnnxHeaderReader {
    fn next_read(&self) -> Option<ReadRequest> {
        if let Some((name, required)) = self.ahead.front() {
            let required = *required && self.parent.is_none();
            return Some(ReadRequest {
                file: format!("{}{name}", self.folder),
                range: None,
                required,
            });
        }
        let graph = || Some(self.scan.next_range());
        match self.items {
            Some(_) => None,
            None => Some(ReadRequest { file: self.file.clone(), range: graph(), required: true }),
        }
    }

    fn accept(
        &mut self,
        bytes: Option<&[u8]>,
        found: &mut HeaderContents,
    ) -> Result<Option<Box<dyn HeaderReader>>, CheckpointError> {
        if let Some(&(name, _)) = self.ahead.front() {
            self.accept_beside(name, bytes, found)?;
        } else if let Some(graph) = self.scan.accept(bytes.unwrap_or_default())? {
            let config = found.config.as_ref().ok_or(CheckpointError::NothingWanted)?;
            let items = plan::items(&graph, config, &mut found.warnings)?;
            found.tensors = items.iter().map(|item| item.info.clone()).collect();
            self.items = Some(items);
        }
        Ok(None)
    }

    fn finish(
        &mut self,
        found: &mut HeaderContents,
    ) -> Result<Box<dyn DataReader>, CheckpointError> {
        found.tensors.clear();
        let items = self.items.take().unwrap_or_default().into_iter();
        let tensors = items.map(|Item { info, source }| (info, source)).collect();
        Ok(Box::new(TensorAssembler::with_recipes(tensors)))
    }
}

/// Exports keep their graphs in a folder of this name below the small files.
const EXPORTS: &str = "onnx/";

/// The folder above one of exports.
fn parent(folder: &str) -> Option<String> {
    let parent = folder.strip_suffix(EXPORTS)?;
    (parent.is_empty() || parent.ends_with('/')).then(|| parent.to_owned())
}

/// Reads the configurations, the model's as it is [described](described_config).
fn parse_config(found: &mut HeaderContents) -> Result<(), CheckpointError> {
    let stored = found.files.get(files::CONFIG).unwrap_or_default().to_vec();
    found.files.insert(files::CONFIG, described_config(&stored)?);
    let parsed = found.parse_config();
    found.files.insert(files::CONFIG, stored);
    parsed
}

/// A `config.json` that says how weights are quantized: one that says nothing of it is read all the
/// same, since the graph says it.
pub(crate) fn described_config(stored: &[u8]) -> Result<Vec<u8>, CheckpointError> {
    const KEY: &str = "quantization_config";
    let mut config: Map<String, Value> = json::read(files::CONFIG, stored)?;
    // A BitNet that says nothing holds master weights.
    let of_bitnet = |value: &Value| value.to_string().to_lowercase().contains("bitnet");
    let named = [config.get("model_type"), config.get("architectures")];
    let is_bitnet = named.into_iter().flatten().any(of_bitnet);
    let silent = config.get(KEY).is_none_or(Value::is_null);
    if !silent || is_bitnet {
        return Ok(stored.to_vec());
    }
    let stands_for = json!({
        "quant_method": "bitnet",
        "linear_class": "autobitlinear",
        "quantization_mode": "offline",
    });
    config.insert(KEY.to_owned(), stands_for);
    json::write(files::CONFIG, &config)
}
