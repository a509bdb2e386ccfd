//! All that an engine can be told, in one value that can be read from TOML.

mod check;
mod generation;
mod parts;

use std::path::Path;

use serde::{Deserialize, Serialize};
use setun_engine::GenerateOptions;

use crate::error::Error;
pub use parts::{
    BatchConfig, ContextConfig, DeviceConfig, MemoryConfig, MonitoringConfig, StreamsConfig,
};

/// How an engine is to run, but for its model; for [`EngineBuilder::config`].
///
/// Its TOML has a table for each part, and a key for each field; what is left out has its default,
/// and what is not known is refused. `docs/configuration.md` shows all of it.
///
/// [`EngineBuilder::config`]: crate::EngineBuilder::config
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct EngineConfig {
    /// Which requests run together.
    pub batch: BatchConfig,
    /// How many positions there are.
    pub context: ContextConfig,
    /// Where it runs.
    pub device: DeviceConfig,
    /// How the model is kept.
    pub memory: MemoryConfig,
    /// What each stream gets.
    pub streams: StreamsConfig,
    /// Default options of generations.
    #[serde(with = "generation")]
    pub generation: GenerateOptions,
    /// What is timed.
    pub monitoring: MonitoringConfig,
}

impl EngineConfig {
    /// Reads a file of TOML.
    ///
    /// # Errors
    ///
    /// If it cannot be read, and as [`from_toml`](Self::from_toml).
    pub fn read(path: impl AsRef<Path>) -> Result<Self, Error> {
        let path = path.as_ref();
        let text = std::fs::read_to_string(path);
        let text = text.map_err(|source| Error::Io { path: path.into(), source })?;
        Self::parse(&text, &path.display().to_string())
    }

    /// Reads TOML.
    ///
    /// # Errors
    ///
    /// If it is no TOML, has a key that is not known or a value of another type; the error names
    /// the line. A value that is out of its range is an error, too.
    pub fn from_toml(text: &str) -> Result<Self, Error> {
        Self::parse(text, "TOML")
    }

    fn parse(text: &str, file: &str) -> Result<Self, Error> {
        let config: Self = toml::from_str(text).map_err(|error| {
            let before = error.span().and_then(|span| text.get(..span.start)).unwrap_or_default();
            let line = 1 + before.matches('\n').count();
            Error::Config { file: file.into(), line, reason: error.message().into() }
        })?;
        config.check()?;
        Ok(config)
    }
}

#[cfg(test)]
mod tests;
