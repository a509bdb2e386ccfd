//! Queries with the functions, on the embedded model.

mod batch;
mod cancelled;
mod error_rows;
mod functions;
mod nested;
mod support;
mod types;
