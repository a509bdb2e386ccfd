//! The commands.

#[cfg(feature = "sql")]
mod batch;
mod bench;
#[cfg(all(test, feature = "serve"))]
mod capabilities_tests;
mod chat;
mod classify;
mod convert;
mod devices;
mod embed;
mod inspect;
mod logits;
pub(crate) mod models;
mod perplexity;
mod profile;
mod run;
mod score;
#[cfg(feature = "serve")]
mod serve;
mod simulate;
#[cfg(feature = "sql")]
mod sql;
mod synth;
mod verify;

use std::{env, ffi::OsString, process};

use clap::{Command as Arguments, CommandFactory, FromArgMatches, Parser, Subcommand};

use crate::{error::CliError, logging::LogFormat, output::report, terminal::is_control};

/// The arguments of `setun`.
#[derive(Debug, Parser)]
#[command(
    name = "setun",
    version,
    about = "Runs BitNet b1.58 language models: ternary weights, the same bits everywhere",
    long_about = None
)]
pub(crate) struct Setun {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Run(run::Args),
    Chat(chat::Args),
    #[cfg(feature = "serve")]
    Serve(serve::Args),
    #[cfg(feature = "sql")]
    Sql(sql::Args),
    #[cfg(feature = "sql")]
    Batch(batch::Args),
    Score(score::Args),
    Classify(classify::Args),
    Embed(embed::Args),
    Logits(logits::Args),
    Perplexity(perplexity::Args),
    Inspect(inspect::Args),
    Verify(verify::Args),
    Convert(convert::Args),
    Models(models::Args),
    Devices(devices::Args),
    Synth(synth::Args),
    Bench(bench::Args),
    Simulate(Box<simulate::Args>),
}

impl Setun {
    /// Reads the arguments of this process; ends it where they are wrong, or ask for help.
    pub(crate) fn from_command_line() -> Self {
        let mut arguments = with_negative_numbers(Self::command());
        let matches = arguments.try_get_matches_from_mut(env::args_os());
        matches
            .and_then(|matches| Self::from_arg_matches(&matches))
            .unwrap_or_else(|error| exit_with(&error.format(&mut arguments)))
    }

    /// How the log is written.
    pub(crate) fn log_format(&self) -> LogFormat {
        match &self.command {
            #[cfg(feature = "serve")]
            Command::Serve(args) => args.log_format,
            _ => LogFormat::default(),
        }
    }

    /// What the log has where `RUST_LOG` is not set.
    pub(crate) fn log_filter(&self) -> Option<&'static str> {
        match &self.command {
            #[cfg(feature = "sql")]
            Command::Batch(_) => Some(batch::LOG),
            _ => None,
        }
    }

    /// Does what was requested.
    pub(crate) fn run(self) -> Result<(), CliError> {
        match self.command {
            Command::Run(args) => run::run(&args),
            Command::Chat(args) => chat::run(&args),
            #[cfg(feature = "serve")]
            Command::Serve(args) => serve::run(&args),
            #[cfg(feature = "sql")]
            Command::Sql(args) => sql::run(args),
            #[cfg(feature = "sql")]
            Command::Batch(args) => batch::run(args),
            Command::Score(args) => score::run(&args),
            Command::Classify(args) => classify::run(&args),
            Command::Embed(args) => embed::run(&args),
            Command::Logits(args) => logits::run(&args),
            Command::Perplexity(args) => perplexity::run(&args),
            Command::Inspect(args) => inspect::run(&args),
            Command::Verify(args) => verify::run(&args),
            Command::Convert(args) => convert::run(&args),
            Command::Models(args) => models::run(&args),
            Command::Devices(args) => devices::run(&args),
            Command::Synth(args) => synth::run(&args),
            Command::Bench(args) => bench::run(&args),
            Command::Simulate(args) => simulate::run(&args),
        }
    }
}

/// Ends the process with help or an error. An error quotes arguments, and has no styles where one of
/// them has control characters: the same characters make the styles.
fn exit_with(error: &clap::Error) -> ! {
    let has_control = |argument: OsString| argument.to_string_lossy().contains(is_control);
    if error.use_stderr() && env::args_os().any(has_control) {
        report(&error.render().to_string());
        process::exit(error.exit_code());
    }
    error.exit()
}

/// Has every argument take a negative number as its value, so that one that is out of range is
/// refused as such.
fn with_negative_numbers(command: Arguments) -> Arguments {
    let takes_them = |argument: clap::Arg| {
        let takes_values = argument.get_action().takes_values();
        argument.allow_negative_numbers(takes_values)
    };
    command.mut_args(takes_them).mut_subcommands(with_negative_numbers)
}
