//! The server as clients see it: through its router, and through sockets.

mod access;
mod agents;
mod answers;
mod anthropic;
mod batches;
mod cancellation;
mod capabilities;
mod compat;
mod counters;
mod crowds;
mod deploy;
mod description;
mod errors;
mod evaluation;
mod further_requests;
mod hostile;
mod lifecycle;
mod limits;
mod models;
mod ollama;
mod responses;
mod reverse_proxy;
mod salts;
#[path = "../../../../tests/support/seed.rs"]
mod seed;
mod sockets;
mod spans;
mod structured;
mod support;
mod thinking;
mod tool_choices;
mod ui;
#[path = "../../../../tests/support/wait.rs"]
mod wait;
