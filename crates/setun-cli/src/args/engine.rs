//! Model, device and settings of an engine.

use std::path::{Path, PathBuf};

use clap::Args;
use setun::{Engine, EngineConfig};

use super::{DeviceArgs, MemoryArgs, ModelArgs, start, with_contexts};
use crate::error::CliError;

/// An engine: which model, where it runs, and its settings.
#[derive(Args, Debug)]
#[command(next_help_heading = None::<&'static str>)] // not that of what comes before
pub struct EngineArgs {
    #[command(flatten)]
    model: ModelArgs,
    #[command(flatten)]
    settings: EngineSettings,
}

/// The settings of engines, whatever their models.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = None::<&'static str>)] // not that of what comes before
pub(crate) struct EngineSettings {
    /// Draft model for speculative decoding: a smaller model with the same vocabulary. The text does
    /// not change
    #[arg(long, value_name = "MODEL")]
    pub(crate) draft: Option<String>,

    #[command(flatten)]
    device: DeviceArgs,
    #[command(flatten)]
    memory: MemoryArgs,

    /// TOML file with settings; options of the command line override it (docs/configuration.md)
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
}

impl EngineArgs {
    /// Refuses a device that is not here.
    pub fn check(&self) -> Result<(), CliError> {
        self.settings.device.device().map(drop)
    }

    /// Loads the model and starts an engine for this number of concurrent texts.
    pub(crate) fn engine(&self, texts: usize) -> Result<Engine, CliError> {
        self.start(Some(texts))
    }

    /// Loads the model and starts an engine for as many concurrent texts as the settings say.
    pub fn default_engine(&self) -> Result<Engine, CliError> {
        self.start(None)
    }

    fn start(&self, texts: Option<usize>) -> Result<Engine, CliError> {
        let config = self.settings.engine_config(texts)?;
        let builder = Engine::builder(self.model.files()?.open()?).config(config);
        start(match &self.settings.draft {
            Some(draft) => builder.draft(self.model.files_of(draft)?.open()?),
            None => builder,
        })
    }
}

impl EngineSettings {
    /// The configuration of an engine: for this number of concurrent texts, or for as many as the
    /// settings say.
    pub(crate) fn engine_config(&self, texts: Option<usize>) -> Result<EngineConfig, CliError> {
        self.device.device()?;
        let mut config = match (&self.config, texts) {
            (Some(file), _) => read_config(file)?,
            (None, Some(texts)) => with_contexts(texts),
            (None, None) => EngineConfig::default(),
        };
        let max_concurrent = &mut config.engine.max_concurrent;
        *max_concurrent = (*max_concurrent).max(texts.unwrap_or_default());
        self.device.apply(&self.memory, &mut config)?;
        Ok(config)
    }
}

/// A configuration that asks for nothing that a command does not report.
fn read_config(file: &Path) -> Result<EngineConfig, CliError> {
    let config = EngineConfig::read(file)?;
    if config.engine.profile || config.engine.timeline {
        return Err(CliError::Usage(format!(
            "--config {}: profile and timeline are for programs, expected --profile or --trace FILE of \
             `setun run` in its place",
            file.display()
        )));
    }
    Ok(config)
}
