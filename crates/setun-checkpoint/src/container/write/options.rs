//! Options of writing a container.

use crate::{
    container::{CUT_BYTES, MAX_CHUNK_BYTES},
    error::CheckpointError,
};

use super::unwritable;

/// How a container is written. The default changes no value, and writes one file.
#[derive(Clone, Debug)]
pub struct Options {
    /// Form of the embedding, where the head has a table of its own.
    pub embedding: TableType,
    /// Form of the head, which may be the embedding as well.
    pub head: TableType,
    /// Most bytes of a chunk: a multiple of 8 up to [`MAX_CHUNK_BYTES`].
    pub chunk_bytes: u64,
    /// Most bytes of tensors and files in one file of the container, before they are compressed;
    /// none for one file. A chunk is never divided.
    pub part_bytes: Option<u64>,
    /// Whether chunks are compressed where that makes them smaller. Only builds with the feature
    /// `zstd` write and read such chunks.
    pub zstd: bool,
    /// Whether biases of linear layers are added before the product is scaled. None decides as
    /// for a Hugging Face folder: before it in an `autobitlinear` whose scales are stored.
    pub bias_before_scale: Option<bool>,
    /// Whether the manifest has room to name an image of the weights; see [`with_image`](super::with_image).
    pub image: bool,
    /// Licence of the weights, in words or as an SPDX expression.
    pub licence: Option<String>,
    /// What the model is converted from.
    pub source: Option<String>,
    /// Name and version of the program that writes.
    pub tool: Option<String>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            embedding: TableType::Stored,
            head: TableType::Stored,
            chunk_bytes: 4 << 20,
            part_bytes: None,
            zstd: false,
            bias_before_scale: None,
            image: false,
            licence: None,
            source: None,
            tool: None,
        }
    }
}

/// In which form a table is written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TableType {
    /// In its own type.
    #[default]
    Stored,
    /// As `F16`, if that changes no value; else it is an error.
    F16,
    /// As `F16`, rounded to nearest.
    RoundedF16,
    /// As int8 codes with a scale for each row: the same as a head that is rounded at load.
    Int8,
}

impl Options {
    pub(super) fn check(&self, has_one_table: bool) -> Result<(), CheckpointError> {
        if has_one_table && ![TableType::Stored, self.head].contains(&self.embedding) {
            let what = "an embedding of another type than the head, whose table it is".to_owned();
            return Err(unwritable(what, "choose the type of the head alone"));
        }
        let sizes = CUT_BYTES..=MAX_CHUNK_BYTES;
        if !sizes.contains(&self.chunk_bytes) || !self.chunk_bytes.is_multiple_of(CUT_BYTES) {
            let what = format!("chunks of {} bytes", self.chunk_bytes);
            return Err(unwritable(what, "take a multiple of 8 up to 16 MiB"));
        }
        if self.image && self.part_bytes.is_some() {
            let what = "an image of the weights in one of several files".to_owned();
            return Err(unwritable(what, "write one file"));
        }
        if self.zstd && !cfg!(feature = "zstd") {
            let what = "compressed chunks, which this build does not write".to_owned();
            return Err(unwritable(what, "leave `zstd` out"));
        }
        Ok(())
    }
}

/// A frame of Zstandard.
#[cfg(feature = "zstd")]
pub(super) fn compress(content: &[u8]) -> Vec<u8> {
    use ruzstd::encoding::{CompressionLevel, compress_to_vec};
    compress_to_vec(content, CompressionLevel::Fastest)
}

/// Never requested: options that request it are refused.
#[cfg(not(feature = "zstd"))]
pub(super) fn compress(content: &[u8]) -> Vec<u8> {
    content.to_vec()
}
