//! The list of the tensors of an ONNX file, and their bytes, for another module: the writing side of
//! [`tensor_list`](crate::tensor_list).

use serde_json::json;

use crate::{
    dtype::Dtype,
    error::CheckpointError,
    files, json as text, onnx,
    reader::Reader,
    tensor::{Tensor, TensorInfo},
    tensor_list::{CODES, PREFIX, listed_bytes},
};

/// The list of the tensors of a reader, once it has read the headers. The tensors that the
/// engine reads itself are passed over by the reader from then on.
///
/// # Errors
///
/// If a tensor has no length that can be counted.
pub fn list(reader: &mut Reader) -> Result<Option<Vec<u8>>, CheckpointError> {
    let Some(tensors) = reader.tensors() else { return Ok(None) };
    let mut listed = Vec::with_capacity(tensors.len());
    let mut stored = vec![];
    for (place, info) in tensors.iter().enumerate() {
        if reader.is_stored(place) {
            stored.push(info.name.clone());
        }
        listed.push(entry(info, reader.is_stored(place))?);
    }
    let list = text::write("the list of tensors", &json!({ "tensors": listed }))?;
    reader.select(|info| !stored.contains(&info.name));
    Ok(Some(list))
}

fn entry(info: &TensorInfo, is_stored: bool) -> Result<serde_json::Value, CheckpointError> {
    let bytes = listed_bytes(info.dtype, &info.shape);
    let bytes = bytes.ok_or_else(|| info.rank("a matrix whose bytes can be counted"))?;
    let (file, range) = if is_stored {
        (info.file.to_string(), [info.range.start, info.range.end])
    } else {
        (format!("{PREFIX}{}", info.name), [0, bytes])
    };
    let (dtype, group) = match info.dtype {
        Dtype::ScaledCodes => (CODES.to_owned(), None),
        Dtype::ScaledTable(group) => (CODES.to_owned(), Some(group)),
        dtype => (dtype.to_string(), None),
    };
    let TensorInfo { name, shape, .. } = info;
    let mut entry =
        json!({ "name": name, "dtype": dtype, "shape": shape, "file": file, "range": range });
    if let Some(group) = group {
        entry["group"] = group.into();
    }
    Ok(entry)
}

/// The bytes of a tensor as the list has it.
#[must_use]
pub fn bytes(tensor: &Tensor) -> Vec<u8> {
    let mut bytes = tensor.data.stored_bytes(0..tensor.data.byte_len()).into_owned();
    let listed = listed_bytes(tensor.info.dtype, &tensor.info.shape);
    let listed = listed.and_then(|listed| usize::try_from(listed).ok());
    bytes.resize(listed.unwrap_or_default().max(bytes.len()), 0);
    bytes
}

/// A small file of a model in ONNX as the engine is to read it: a configuration says how weights
/// are quantized.
///
/// # Errors
///
/// If the configuration is not JSON.
pub fn file(reader: &Reader, name: &str) -> Result<Option<Vec<u8>>, CheckpointError> {
    let Some(stored) = reader.files().get(name) else { return Ok(None) };
    if name == files::CONFIG {
        return onnx::described_config(stored).map(Some);
    }
    Ok(Some(stored.to_vec()))
}
