//! The server as clients see it: through its router, and through sockets.

mod access;
mod answers;
mod anthropic;
mod cancellation;
mod crowds;
mod deploy;
mod errors;
mod lifecycle;
mod limits;
mod models;
mod ollama;
mod responses;
mod salts;
mod spans;
mod structured;
mod support;
mod ui;
