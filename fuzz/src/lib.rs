//! Shared parts of the fuzz targets: how an input is run, and what is done with it.

mod harness;
mod stack;
pub mod subjects;
#[path = "../../tests/src/trial.rs"]
pub mod trial;

use setun_checkpoint::Source;
#[cfg(feature = "hub")]
use setun_hub as hub;

pub use harness::{MemoryBound, run_bounded};
use trial::Folder;

/// Stack of an input: that of a browser.
const STACK_BYTES: usize = if cfg!(feature = "sanitized") { 8 << 20 } else { 1 << 20 };

/// A matrix of one column has 32 bytes a row for the quarter of a byte that stores it, and for a
/// moment a matrix is there twice. Threads and tables of a few positions need no input.
pub const READER_MEMORY: MemoryBound = MemoryBound { fixed: 4 << 20, each: 320 };

/// Runs `work` with a stack of [`STACK_BYTES`].
fn on_small_stack<T>(work: impl FnOnce() -> T) -> T {
    stack::on_small_stack(STACK_BYTES, work)
}

/// Reads a lone file of this name.
///
/// # Panics
///
/// If reading it never ends, or takes more than [`READER_MEMORY`].
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
    let _ = run_bounded(bytes, READER_MEMORY, || trial::read(source, folder));
}

/// Reads files that lie together up to their tensors' data.
///
/// # Panics
///
/// As [`read_file`].
pub fn read_header(source: &Source, folder: &Folder<'_>) {
    let bytes = folder.values().map(|bytes| bytes.len()).sum();
    let _ = run_bounded(bytes, READER_MEMORY, || trial::read_header(source, folder));
}
