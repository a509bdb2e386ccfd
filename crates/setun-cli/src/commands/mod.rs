//! The commands.

mod bench;
mod chat;
mod convert;
mod devices;
mod inspect;
mod logits;
pub(crate) mod models;
mod perplexity;
mod profile;
mod run;
mod synth;
mod verify;

use clap::{Parser, Subcommand};

use crate::error::CliError;

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
    Logits(logits::Args),
    Perplexity(perplexity::Args),
    Inspect(inspect::Args),
    Verify(verify::Args),
    Convert(convert::Args),
    Models(models::Args),
    Devices(devices::Args),
    Synth(synth::Args),
    Bench(bench::Args),
}

impl Setun {
    /// Does what was requested.
    pub(crate) fn run(self) -> Result<(), CliError> {
        match self.command {
            Command::Run(args) => run::run(&args),
            Command::Chat(args) => chat::run(&args),
            Command::Logits(args) => logits::run(&args),
            Command::Perplexity(args) => perplexity::run(&args),
            Command::Inspect(args) => inspect::run(&args),
            Command::Verify(args) => verify::run(&args),
            Command::Convert(args) => convert::run(&args),
            Command::Models(args) => models::run(&args),
            Command::Devices(args) => devices::run(&args),
            Command::Synth(args) => synth::run(&args),
            Command::Bench(args) => bench::run(&args),
        }
    }
}
