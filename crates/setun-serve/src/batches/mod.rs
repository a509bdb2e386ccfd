//! Files and batches of `OpenAI`'s API: requests of a file are answered beside those of clients.
//!
//! - A [`FileStore`] is a folder with files and batches. What is acknowledged is on the disk.
//! - An upload and a download pass in pieces, and are never in memory as a whole.
//! - A batch runs at the lowest priority, a few of its requests at a time. Answers are appended to files; after
//!   a restart those that are there are not computed again.
//! - Each key has files and batches of its own.

mod answer_files;
mod answering;
pub(crate) mod batch_routes;
pub(crate) mod description;
mod disk;
mod error;
pub(crate) mod file_routes;
mod form;
mod lines;
mod new_file;
mod page;
mod records;
mod runner;
mod service;
mod store;
mod usage;
mod validation;

pub use error::FilesError;
pub(crate) use runner::resume;
pub(crate) use service::{Batches, Requester};
pub use store::FileStore;
pub use usage::FileLimits;
