//! Making checkpoints: the texts and the header, without doing any IO.
//!
//! A safetensors file is its [`Layout::header`], then the bytes of [`Layout::tensors`] in order:
//! so a file of any size is written as its tensors are made.

mod config;
mod hf;

use std::{collections::BTreeMap, sync::Arc};

use crate::dtype::Dtype;
use serde::{Serialize, Serializer, ser::SerializeMap};

pub use config::{config_json, generation_config_json};
pub use hf::HfWriter;

use crate::{
    error::CheckpointError,
    header::{self, LENGTH_BYTES, METADATA},
    json,
    outline::Content,
    tensor::TensorInfo,
    warning::Warning,
};

/// Bytes of a file that is written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Piece {
    /// Name of the file.
    pub file: String,
    /// Where in the file they go.
    pub offset: u64,
    /// The bytes.
    pub bytes: Vec<u8>,
}

/// Takes pieces as they are made.
pub type Sink<'a> = dyn FnMut(Piece) + 'a;

/// Writes a model in some format, without doing any IO: it hands out pieces of files. A table comes
/// in pieces of a few MiB, so that it is not in memory twice.
pub trait Writer {
    /// What is known before any tensor.
    ///
    /// # Errors
    ///
    /// If the format cannot hold the model.
    fn begin(&mut self, write: &mut Sink<'_>) -> Result<(), CheckpointError>;

    /// What a tensor of the [`Outline`](crate::outline::Outline) becomes. They come in its order.
    ///
    /// # Errors
    ///
    /// If the format cannot hold the values.
    fn put(
        &mut self,
        name: &str,
        content: Content,
        write: &mut Sink<'_>,
    ) -> Result<(), CheckpointError>;

    /// What is known after all tensors.
    ///
    /// # Errors
    ///
    /// If a tensor is missing.
    fn end(&mut self, write: &mut Sink<'_>) -> Result<(), CheckpointError>;

    /// What other programs will not read alike.
    fn warnings(&self) -> Vec<Warning> {
        vec![]
    }
}

/// Name, type and shape of a tensor that is to be written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewTensor {
    /// Name, for example `model.norm.weight`.
    pub name: String,
    /// Type of the elements.
    pub dtype: Dtype,
    /// Shape; the last dimension is contiguous.
    pub shape: Vec<usize>,
}

/// The plan of a safetensors file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Layout {
    /// The first bytes of the file.
    pub header: Vec<u8>,
    /// The tensors, each with its place; the first follows the header, and there are no gaps.
    pub tensors: Vec<TensorInfo>,
}

/// Plans a safetensors file of these tensors, in this order. The same arguments give the same
/// bytes.
///
/// `file` is its name, for errors and for [`TensorInfo::file`]; `metadata` are strings that the
/// header holds, where a lone file carries the others (see [`Source::File`](crate::Source)).
///
/// # Errors
///
/// If a name occurs twice, a size does not fit, or the header would be too long to be read.
pub fn layout(
    file: &str,
    tensors: &[NewTensor],
    metadata: &BTreeMap<String, String>,
) -> Result<Layout, CheckpointError> {
    let mut json = json::write(file, &Header { metadata, tensors })?;
    // The data start at a multiple of eight, so that a mapped file is aligned.
    json.resize(json.len().next_multiple_of(size_of::<u64>()), b' ');
    let length = (json.len() as u64).to_le_bytes();
    header::length(file, length)?;
    // What is read back is what is written; this is the check of names and sizes, too.
    let tensors = header::parse(&Arc::from(file), &json)?.tensors;
    header::check_unique(&tensors)?;
    debug_assert_eq!(LENGTH_BYTES, length.len() as u64, "one length field");
    Ok(Layout { header: [&length[..], &json].concat(), tensors })
}

struct Header<'a> {
    metadata: &'a BTreeMap<String, String>,
    tensors: &'a [NewTensor],
}

#[derive(Serialize)]
struct Entry<'a> {
    dtype: String,
    shape: &'a [usize],
    data_offsets: [u64; 2],
}

impl Serialize for Header<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        if !self.metadata.is_empty() {
            map.serialize_entry(METADATA, self.metadata)?;
        }
        let mut start = 0;
        for NewTensor { name, dtype, shape } in self.tensors {
            let end = start + dtype.bytes(shape).unwrap_or(0);
            let entry = Entry { dtype: dtype.to_string(), shape, data_offsets: [start, end] };
            map.serialize_entry(name, &entry)?;
            start = end;
        }
        map.end()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn new(name: &str, dtype: Dtype, shape: &[usize]) -> NewTensor {
        NewTensor { name: name.to_owned(), dtype, shape: shape.to_vec() }
    }

    #[test]
    fn the_reference_reader_reads_it() {
        let tensors = [new("b", Dtype::Bf16, &[2, 3]), new("a", Dtype::F32, &[1])];
        let metadata = BTreeMap::from([("setun.file/config.json".to_owned(), "{}\n".to_owned())]);
        let layout = layout("m.safetensors", &tensors, &metadata).unwrap();
        assert_eq!(layout.header.len() % 8, 0);
        let mut file = layout.header.clone();
        file.extend(0..16);
        let (_, header) = safetensors::SafeTensors::read_metadata(&file).unwrap();
        let strings = header.metadata().as_ref().unwrap();
        assert_eq!(strings["setun.file/config.json"], "{}\n");
        let read = safetensors::SafeTensors::deserialize(&file).unwrap();
        assert_eq!(read.tensor("b").unwrap().data(), (0..12).collect::<Vec<u8>>());
        assert_eq!(read.tensor("a").unwrap().data(), [12, 13, 14, 15]);
        let start = layout.header.len() as u64;
        assert_eq!(layout.tensors[1].range, start + 12..start + 16);
    }

    #[test]
    fn bad_plans_are_refused() {
        let refused =
            |tensors: &[NewTensor]| layout("m.safetensors", tensors, &BTreeMap::new()).unwrap_err();
        let a = new("a", Dtype::U8, &[4]);
        let error = refused(&[a.clone(), a]);
        assert!(matches!(error, CheckpointError::DuplicateTensor { .. }), "{error}");
        let error = refused(&[new("a", Dtype::F4, &[3])]);
        assert!(matches!(error, CheckpointError::TensorSize { .. }), "{error}");
        let error = refused(&[new("a", Dtype::F32, &[usize::MAX, 2])]);
        assert!(matches!(error, CheckpointError::TensorSize { .. }), "{error}");
        let error = refused(&[new(METADATA, Dtype::U8, &[4])]);
        assert!(matches!(error, CheckpointError::Json { .. }), "{error}");
    }
}
