//! The `setun-batch` command: queries and batch jobs, which `setun sql` and `setun batch` hand to it.

mod answers;
#[cfg(feature = "cluster")]
mod cluster;
mod job;
mod queries;
mod sql;

use std::process::ExitCode;

use clap::{Parser, Subcommand};
use setun_cli::{CliError, run};

fn main() -> ExitCode {
    run::<Batch>()
}

/// The arguments of `setun-batch`.
#[derive(Debug, Parser)]
#[command(
    name = "setun-batch",
    version,
    about = "Queries and batch jobs over tables of prompts: `setun sql` and `setun batch`",
    long_about = None
)]
struct Batch {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Run(Box<job::RunArgs>),
    Status(job::StatusArgs),
    #[cfg(feature = "cluster")]
    Scheduler(cluster::SchedulerArgs),
    #[cfg(feature = "cluster")]
    Executor(Box<cluster::ExecutorArgs>),
    Sql(Box<sql::Args>),
}

impl setun_cli::Command for Batch {
    /// A job that waits or tries again says why.
    fn log_filter(&self) -> Option<&'static str> {
        (!matches!(self.command, Command::Sql(_))).then_some("setun_sql=warn")
    }

    fn run(self) -> Result<(), CliError> {
        match self.command {
            Command::Run(args) => job::run(*args),
            Command::Status(args) => job::status(&args),
            #[cfg(feature = "cluster")]
            Command::Scheduler(args) => cluster::schedule(args),
            #[cfg(feature = "cluster")]
            Command::Executor(args) => cluster::execute(*args),
            Command::Sql(args) => sql::run(*args),
        }
    }
}
