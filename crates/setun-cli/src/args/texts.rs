//! Arguments of commands that read texts and generate none.

use std::path::Path;

use clap::Args;
use setun::Engine;

use super::{DeviceArgs, MemoryArgs, ModelArgs, builder, start};
use crate::{error::CliError, input};

/// Whole contexts in the cache: this many texts run at once.
const CONTEXTS: usize = 4;

/// Which model reads, and where.
#[derive(Args, Debug)]
pub(crate) struct ReaderArgs {
    #[command(flatten)]
    model: ModelArgs,

    #[command(flatten)]
    device: DeviceArgs,
    #[command(flatten)]
    memory: MemoryArgs,

    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

impl ReaderArgs {
    /// Loads the model and starts an engine.
    pub(crate) fn engine(&self) -> Result<Engine, CliError> {
        self.device.device()?; // before the work of loading
        start(builder(self.model.files()?.open()?, &self.device, &self.memory, CONTEXTS)?)
    }
}

/// Texts of the command line and then the lines of a file.
pub(crate) fn with_lines(given: &[String], file: Option<&Path>) -> Result<Vec<String>, CliError> {
    let mut texts = given.to_vec();
    if let Some(file) = file {
        texts.extend(input::file(file)?.lines().map(str::to_owned));
    }
    Ok(texts)
}

/// A prompt and what may follow it.
#[derive(Args, Debug)]
pub(crate) struct PromptArgs {
    /// Prompt [default: standard input, without its last line break]
    pub(crate) prompt: Option<String>,
}

impl PromptArgs {
    /// The prompt.
    pub(crate) fn read(&self) -> Result<String, CliError> {
        self.prompt.clone().map_or_else(input::prompt, Ok)
    }
}
