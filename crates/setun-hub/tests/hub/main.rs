//! Pulls from a server on this machine that misbehaves on request.

mod addresses;
mod broken;
mod changed;
mod healing;
mod pace;
mod repositories;
mod server;
mod store;
mod support;
#[path = "../../../../tests/support/wait.rs"]
mod wait;
mod wrong;
