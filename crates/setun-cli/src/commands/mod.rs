//! The commands.

mod bench;
#[cfg(all(test, feature = "serve"))]
mod capabilities_tests;
mod chat;
mod classify;
mod companion;
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
mod synth;
mod unfinished;
mod verify;

use std::{env, process::ExitCode};

use clap::{CommandFactory, Parser, Subcommand};

use crate::{
    command::{begin, end, from_command_line},
    error::CliError,
    help::arranged,
    logging::LogFormat,
};

/// The command `setun`: runs the subcommand of this process's arguments.
#[must_use]
pub fn setun() -> ExitCode {
    if let Some(error) = companion::run(env::args_os()) {
        return end(Err(error));
    }
    let command: Setun =
        from_command_line(arranged(Setun::command()).subcommands(companion::subcommands()));
    begin(command.log_format(), None);
    end(command.run())
}

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
    /// How the log is written.
    fn log_format(&self) -> LogFormat {
        match &self.command {
            #[cfg(feature = "serve")]
            Command::Serve(args) => args.log_format,
            _ => LogFormat::default(),
        }
    }

    /// Does what was requested.
    fn run(self) -> Result<(), CliError> {
        match self.command {
            Command::Run(args) => run::run(&args),
            Command::Chat(args) => chat::run(&args),
            #[cfg(feature = "serve")]
            Command::Serve(args) => serve::run(&args),
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
