//! What passes between a reader and its caller: where a checkpoint lies, what is wanted of it,
//! and the answer.

use std::ops::Range;

/// Where a checkpoint lies.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    /// A folder as Hugging Face lays it out, or with [`container::FILE`](crate::container::FILE)
    /// in it; names are relative to it.
    Folder,
    /// The first or only file of a [`container`](crate::container), which names the others; or
    /// one safetensors file. That may carry the folder's other files in its metadata, each as a
    /// string under the key `setun.file/<name>`; without `config.json` there, they are wanted
    /// beside it.
    File(String),
}

/// A range of bytes that the reader wants next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Want {
    /// Name of the file, as [`Source`] names files.
    pub file: String,
    /// Bytes of it; none for the whole file.
    pub range: Option<Range<u64>>,
    /// Whether [`Answer::Missing`] is an error.
    pub required: bool,
}

/// What there is where something was wanted.
#[derive(Clone, Copy, Debug)]
pub enum Answer<'a> {
    /// The bytes of the range, or of the whole file. Fewer than were asked for say that the file
    /// ends there.
    Bytes(&'a [u8]),
    /// There is no such file.
    Missing,
}
