//! Subcommands of another command, `setun-batch`, whose query engine takes longer to compile than `setun`.
//!
//! As git does with its commands, `setun` looks for it in its own folder and then on the path, and passes all
//! arguments on.

use std::{env, ffi::OsString, io, path::PathBuf, process};

use clap::Command as Arguments;

use crate::error::CliError;

/// The other command.
const PROGRAM: &str = "setun-batch";

/// The line that installs it, in a checkout.
const INSTALL: &str = "cargo install --locked --path batch/setun-batch";

/// Its subcommand for queries. Those of jobs are the arguments of `setun batch`.
const QUERIES: &str = "sql";
const JOBS: &str = "batch";

/// The subcommands, for the help.
pub(super) fn subcommands() -> [Arguments; 2] {
    let subcommand = |name, about: &str| {
        Arguments::new(name).about(about.to_owned()).long_about(format!(
            "{about}\n\nThe command `{PROGRAM}` does it: `setun {name} --help` has its help. This installs it:\n\n    \
             {INSTALL}"
        ))
    };
    [
        subcommand(QUERIES, "Query files with the functions of a model (docs/sql.md)"),
        subcommand(JOBS, "Run jobs over tables of prompts, here or on a cluster (docs/batch.md)"),
    ]
}

/// Runs the other command if these arguments, which begin with this command's name, are for it. On Unix it
/// takes the place of this process.
pub(super) fn run(mut arguments: impl Iterator<Item = OsString>) -> Option<CliError> {
    let first = arguments.nth(1)?;
    let subcommand = [QUERIES, JOBS].into_iter().find(|name| first == *name)?;
    let name = (subcommand == QUERIES).then(|| QUERIES.into());
    let program = sibling_program().unwrap_or_else(|| PROGRAM.into());
    let mut command = process::Command::new(&program);
    command.args(name.into_iter().chain(arguments));
    let source = exec(&mut command);
    // A program that is there and lacks its loader is not found, either.
    Some(if source.kind() == io::ErrorKind::NotFound && !program.is_absolute() {
        CliError::NotInstalled { subcommand, program: PROGRAM, install: INSTALL }
    } else {
        CliError::Start { program, source }
    })
}

/// The other command in the folder of this one.
fn sibling_program() -> Option<PathBuf> {
    let this = env::current_exe().ok()?;
    let this = this.canonicalize().unwrap_or(this); // macOS names a link to it
    let program = this.with_file_name(format!("{PROGRAM}{}", env::consts::EXE_SUFFIX));
    program.is_file().then_some(program)
}

/// Ends this process with the command; returns why it cannot be started.
#[cfg(unix)]
fn exec(command: &mut process::Command) -> io::Error {
    std::os::unix::process::CommandExt::exec(command)
}

/// Ends this process with the status of the command; returns why it cannot be started. Ctrl-C reaches both
/// processes, and the command decides.
#[cfg(not(unix))]
fn exec(command: &mut process::Command) -> io::Error {
    let _ = ctrlc::set_handler(|| ());
    match command.status() {
        Ok(status) => process::exit(status.code().unwrap_or(1)),
        Err(error) => error,
    }
}
