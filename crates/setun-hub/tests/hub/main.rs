//! Pulls from a server on this machine that is told to misbehave.

mod addresses;
mod broken;
mod changed;
mod repositories;
mod server;
mod store;
mod support;
mod wrong;
