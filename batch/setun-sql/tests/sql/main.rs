//! Queries with the functions, on the embedded model.

mod batch;
mod cancelled;
#[cfg(feature = "ballista")]
mod cluster;
mod error_rows;
mod functions;
mod nested;
mod support;
mod types;
