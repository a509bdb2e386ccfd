//! The `setun` command; each subcommand is a file in `commands`.

mod args;
mod commands;
mod destination;
mod error;
mod flags;
mod input;
mod interrupt;
mod lines;
mod logging;
mod offer;
mod output;
mod pull_progress;
mod source;
mod synth;
mod terminal;
#[cfg(unix)]
mod unix_signals;

use std::process::ExitCode;

use output::report;

fn main() -> ExitCode {
    let command = commands::Setun::from_command_line();
    logging::install(command.log_format(), command.log_filter());
    interrupt::install();
    match command.run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            if !error.is_silent() {
                report(&format!("setun: {error}\n"));
            }
            ExitCode::from(error.status())
        }
    }
}
