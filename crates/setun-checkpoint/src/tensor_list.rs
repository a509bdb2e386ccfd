//! A list of tensors that another module reads.
//!
//! A format whose reader is large has a module of its own in WebAssembly, which hands a list of the
//! tensors and their bytes to the engine. The engine reads them as [`Source::Tensors`]: the small
//! files first, by their names, then the list, by the name of the source, then the tensors. They
//! are those that the format's reader hands out natively, so that the same bits are computed.
//!
//! The list is a JSON object:
//!
//! ```json
//! {"tensors": [
//!   {"name": "model.norm.weight", "dtype": "F32", "shape": [64], "file": "model.onnx", "range": [96, 352]},
//!   {"name": "model.layers.0.mlp.up_proj.weight", "dtype": "CODES", "shape": [128, 64],
//!    "file": "tensor:model.layers.0.mlp.up_proj.weight", "range": [0, 3076]}
//! ]}
//! ```
//!
//! A file whose name begins with [`PREFIX`] is a tensor that is put together by the module; any
//! other is one of the model. `CODES` are codes with their scales, and with `group` those of a
//! table. Their number of scales is not known before they are read: the range has room for the
//! most, and what is left of it is padding.
//!
//! [`Source::Tensors`]: crate::Source::Tensors

use std::collections::VecDeque;

use serde_json::{Map, Value};
use setun_ops::ternary::{PLANE_COLUMNS, row_bytes};

use crate::{
    dtype::Dtype,
    error::CheckpointError,
    files, json,
    readers::{HeaderContents, HeaderReader},
    source::ReadRequest,
    tensor::TensorInfo,
};

/// Beginning of the names of tensors that are put together.
pub const PREFIX: &str = "tensor:";

/// The name of the type that a list has for codes with scales.
pub(crate) const CODES: &str = "CODES";

/// First the small files, then the list.
#[derive(Debug)]
pub(crate) struct TensorListReader {
    list: String,
    ahead: VecDeque<(&'static str, bool)>,
    is_read: bool,
}

impl TensorListReader {
    pub(crate) fn new(list: String) -> Self {
        Self { list, ahead: files::BESIDE.into(), is_read: false }
    }

    fn read_list(&self, bytes: &[u8]) -> Result<Vec<TensorInfo>, CheckpointError> {
        let list: Map<String, Value> = json::read(&self.list, bytes)?;
        let tensors = list.get("tensors").and_then(Value::as_array);
        let tensors = tensors.map(Vec::as_slice).unwrap_or_default();
        let read = |tensor: &Value| {
            tensor_info(tensor).ok_or_else(|| {
                let found = tensor["name"].to_string();
                CheckpointError::field(&self.list, "tensors", "a tensor with its place", found)
            })
        };
        tensors.iter().map(read).collect()
    }
}

impl HeaderReader for TensorListReader {
    fn next_read(&self) -> Option<ReadRequest> {
        let (file, required) = match self.ahead.front() {
            Some(&(name, required)) => (name, required),
            None if self.is_read => return None,
            None => (self.list.as_str(), true),
        };
        Some(ReadRequest { file: file.to_owned(), range: None, required })
    }

    fn accept(
        &mut self,
        bytes: Option<&[u8]>,
        found: &mut HeaderContents,
    ) -> Result<Option<Box<dyn HeaderReader>>, CheckpointError> {
        let Some((name, _)) = self.ahead.pop_front() else {
            found.tensors = self.read_list(bytes.unwrap_or_default())?;
            self.is_read = true;
            return Ok(None);
        };
        if let Some(bytes) = bytes {
            found.files.insert(name, bytes.to_vec());
        }
        if name == files::GENERATION_CONFIG {
            found.parse_config()?;
        }
        Ok(None)
    }
}

fn tensor_info(tensor: &Value) -> Option<TensorInfo> {
    let number = |value: &Value| usize::try_from(value.as_u64()?).ok();
    let shape: Vec<_> = tensor["shape"].as_array()?.iter().map(number).collect::<Option<_>>()?;
    let dtype = match (tensor["dtype"].as_str()?, &tensor["group"]) {
        (CODES, Value::Null) => Dtype::ScaledCodes,
        (CODES, group) => Dtype::ScaledTable(u32::try_from(group.as_u64()?).ok()?),
        (name, _) => Dtype::from_safetensors(name)?,
    };
    let range = tensor["range"][0].as_u64()?..tensor["range"][1].as_u64()?;
    let bytes = listed_bytes(dtype, &shape)?;
    let is_whole = range.end.checked_sub(range.start) == Some(bytes);
    is_whole.then_some(TensorInfo {
        name: tensor["name"].as_str()?.to_owned(),
        dtype,
        shape,
        file: tensor["file"].as_str()?.into(),
        range,
        paired_heads: None,
    })
}

/// Bytes of a tensor: of codes those of all scales that there may be.
pub(crate) fn listed_bytes(dtype: Dtype, shape: &[usize]) -> Option<u64> {
    if !matches!(dtype, Dtype::ScaledCodes | Dtype::ScaledTable(_)) {
        return dtype.bytes(shape);
    }
    let &[rows, columns] = shape else { return None };
    let in_row = row_bytes(columns) as u64 + 4 * columns.div_ceil(PLANE_COLUMNS).max(1) as u64;
    in_row.checked_mul(rows.max(1) as u64)?.checked_add(4)
}
