//! Stored files and batches: a folder with what clients sent and what answered them.
//!
//! What is acknowledged is on the disk. Each key has files and batches of its own.

pub(crate) mod answer_files;
mod disk;
mod error;
pub(crate) mod new_file;
pub(crate) mod records;
pub(crate) mod service;
mod store;
mod usage;

pub use error::FilesError;
pub use store::FileStore;
pub use usage::FileLimits;
