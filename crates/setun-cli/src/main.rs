//! The `setun` command: one small file a command, in `commands`.

mod args;
mod commands;
mod error;
mod input;
mod interrupt;
mod output;
mod source;
mod synth;

use std::process::ExitCode;

use clap::Parser;

fn main() -> ExitCode {
    let command = commands::Setun::parse();
    interrupt::install();
    match command.run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => error.report(),
    }
}
