//! Shared parts of the fuzz targets: an attempt to read, and the memory that it may take.

mod memory;
#[path = "../../tests/src/trial.rs"]
pub mod trial;

use setun_checkpoint::Source;

pub use memory::bounded;
use trial::Folder;

/// Reads a lone file of this name.
///
/// # Panics
///
/// If reading it never ends, or takes more memory than [`bounded`] allows.
pub fn read_file(name: &str, bytes: &[u8]) {
    read(&Source::File(name.to_owned()), &Folder::from([(name, bytes)]));
}

/// Reads files that lie together.
///
/// # Panics
///
/// As [`read_file`].
pub fn read(source: &Source, folder: &Folder<'_>) {
    let bytes = folder.values().map(|bytes| bytes.len()).sum();
    // What is no checkpoint is an error; this one may be a sound one.
    let _ = bounded(bytes, || trial::read(source, folder));
}
