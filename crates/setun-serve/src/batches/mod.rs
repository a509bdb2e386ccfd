//! Routes of files and batches of `OpenAI`'s API, and the runner of batches: requests of a file are answered beside those
//! of clients.
//!
//! - An upload and a download pass in pieces, and are never in memory as a whole.
//! - A batch runs at the lowest priority, a few of its requests at a time. Answers are appended to files; after
//!   a restart those that are there are not computed again.

mod answering;
pub(crate) mod batch_routes;
pub(crate) mod description;
pub(crate) mod file_routes;
mod form;
mod lines;
mod page;
mod runner;
mod validation;

pub(crate) use runner::resume;
