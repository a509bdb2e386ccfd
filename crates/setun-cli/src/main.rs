//! The `setun` command.

use std::process::ExitCode;

fn main() -> ExitCode {
    setun_cli::setun()
}
