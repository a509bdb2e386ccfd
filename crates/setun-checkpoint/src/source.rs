//! Sources of a checkpoint, and the requests and answers between a reader and its caller.

use std::ops::Range;

use crate::pretokenizer::Pretokenizer;

/// Most bytes of tensor data in a request, unless a format has larger pieces itself.
pub const PIECE_BYTES: u64 = 4 << 20;

/// Where a checkpoint lies.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    /// A folder as Hugging Face lays it out, or with [`container::FILE`](crate::container::FILE)
    /// in it; names are relative to it.
    Folder,
    /// One file: of GGUF, or the first or another of its parts, which are requested beside it; the
    /// first or only file of a [`container`](crate::container), which names the others; or of
    /// safetensors. That may carry the folder's other files in its metadata, each as a
    /// string under the key `setun.file/<name>`; without `config.json` there, they are requested
    /// beside it.
    File(String),
    /// A [list](crate::tensor_list) of tensors that another module reads, with this name.
    Tensors(String),
}

/// What a file does not say of itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// How the codes of GGUF's `I2_S` lie.
    pub i2s: I2sBlocks,
    /// How a GGUF file's byte-level tokenizer splits text, in place of what `tokenizer.ggml.pre`
    /// says. Older files do not say it.
    pub pretokenizer: Option<Pretokenizer>,
}

/// How the codes of GGUF's `I2_S` lie. No file says which of the two it has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum I2sBlocks {
    /// 128 weights in 32 bytes, as in every published file.
    #[default]
    Wide,
    /// 64 weights in 16 bytes, as some builds for ARM wrote it.
    Narrow,
}

/// A range of bytes that the reader wants next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReadRequest {
    /// Name of the file, as [`Source`] names files.
    pub file: String,
    /// Bytes of it; none for the whole file.
    pub range: Option<Range<u64>>,
    /// Whether [`Answer::Missing`] is an error.
    pub required: bool,
}

/// What was found at the requested range.
#[derive(Clone, Copy, Debug)]
pub enum Answer<'a> {
    /// The bytes of the range, or of the whole file. Fewer than were requested say that the file
    /// ends there.
    Bytes(&'a [u8]),
    /// There is no such file.
    Missing,
}
