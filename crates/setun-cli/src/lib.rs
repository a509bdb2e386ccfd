//! The command `setun` as a library, for `setun-batch`, which shares its options and output.
//!
//! Its users are commands of this project. Others use the crate `setun`.

mod args;
mod command;
mod commands;
mod destination;
mod error;
mod flags;
mod help;
pub mod input;
pub mod interrupt;
mod lines;
mod log_writer;
mod logging;
mod offer;
pub mod output;
mod pull_progress;
mod source;
mod synth;
mod terminal;
#[cfg(unix)]
mod unix_signals;

pub use args::EngineArgs;
pub use command::{Command, run};
pub use commands::setun;
pub use destination::{check_export, export};
pub use error::CliError;
pub use lines::Lines;
