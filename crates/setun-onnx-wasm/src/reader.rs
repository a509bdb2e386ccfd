//! `OnnxReader`: an ONNX file as a list of tensors.

use js_sys::Array;
use setun_checkpoint::{Answer, Reader, tensor_list, tensor_list_writer};
use wasm_bindgen::prelude::*;

use crate::error::to_js;

/// Reads an ONNX file: says which bytes it needs, and has the files that `setun-wasm` requests of
/// [`Source::Tensors`](setun_checkpoint::Source::Tensors).
#[wasm_bindgen]
pub struct OnnxReader {
    file: String,
    reader: Reader,
    list: Option<Vec<u8>>,             // once the graph is read
    tensor: Option<(String, Vec<u8>)>, // the one that was put together last
}

#[wasm_bindgen]
impl OnnxReader {
    /// A reader of `file`, of which nothing is read.
    #[wasm_bindgen(constructor)]
    #[must_use]
    pub fn new(file: String) -> OnnxReader {
        let reader = Reader::of_onnx(&file);
        Self { file, reader, list: None, tensor: None }
    }

    /// What must be [given](Self::give) before `name` is there, as `[file, start, end, required]`
    /// without a range for a whole file; `undefined` once it is there, or will not be.
    #[wasm_bindgen(js_name = nextRead)]
    #[must_use]
    #[expect(
        clippy::cast_precision_loss,
        reason = "JavaScript numbers; files are below 2^53 bytes"
    )]
    pub fn next_read(&self, name: &str) -> Option<Array> {
        if self.list.is_some() && (!is_tensor(name) || self.has_tensor(name)) {
            return None;
        }
        let read = self.reader.next_read()?;
        let range = read.range.map(|range| [range.start as f64, range.end as f64]);
        let at = |place: usize| range.map_or(JsValue::UNDEFINED, |range| range[place].into());
        Some(Array::of4(&read.file.into(), &at(0), &at(1), &read.required.into()))
    }

    /// Takes the bytes that are needed; fewer where the file ends, `undefined` if it does not exist.
    ///
    /// # Errors
    ///
    /// If the file is damaged, incomplete, or has operations that are not read.
    #[expect(clippy::needless_pass_by_value, reason = "bytes of JavaScript are copied")]
    pub fn give(&mut self, bytes: Option<Vec<u8>>) -> Result<(), JsValue> {
        let answer = bytes.as_deref().map_or(Answer::Missing, Answer::Bytes);
        self.reader.give(answer).map_err(|error| to_js(&error))?;
        if self.list.is_none() {
            self.list =
                tensor_list_writer::list(&mut self.reader).map_err(|error| to_js(&error))?;
        }
        if let Some(tensor) = self.reader.take() {
            let name = format!("{}{}", tensor_list::PREFIX, tensor.info.name);
            self.tensor = Some((name, tensor_list_writer::bytes(&tensor)));
        }
        Ok(())
    }

    /// Bytes `start..end` of a file that the engine requests, or the whole file; `undefined` if there
    /// is none.
    ///
    /// # Errors
    ///
    /// If the model's configuration is damaged.
    pub fn read(
        &self,
        name: &str,
        start: Option<usize>,
        end: Option<usize>,
    ) -> Result<Option<Vec<u8>>, JsValue> {
        if let Some((_, bytes)) = self.tensor.as_ref().filter(|(known, _)| known == name) {
            let range = start.unwrap_or(0)..end.unwrap_or(bytes.len()).min(bytes.len());
            return Ok(bytes.get(range).map(<[u8]>::to_vec));
        }
        if name == self.file {
            return Ok(self.list.clone());
        }
        tensor_list_writer::file(&self.reader, name).map_err(|error| to_js(&error))
    }

    fn has_tensor(&self, name: &str) -> bool {
        self.tensor.as_ref().is_some_and(|(known, _)| known == name)
    }
}

fn is_tensor(name: &str) -> bool {
    name.starts_with(tensor_list::PREFIX)
}
