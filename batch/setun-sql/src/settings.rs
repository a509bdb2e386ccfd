//! Settings of a job, by their names in `SET`.

use std::{
    any::Any,
    time::{SystemTime, UNIX_EPOCH},
};

use datafusion::{
    common::{config_datafusion_err, config_err},
    config::{ConfigEntry, ConfigExtension, ConfigOptions, ExtensionOptions},
    error::Result,
};

/// Settings of the functions: `SET setun.seed = 7`.
#[derive(Clone, Debug, Default)]
pub struct Settings {
    /// Seed of the job. That of a row is a hash of it and the row's key.
    pub seed: u64,
    /// Fingerprint that the model must have, as `model()` gives it; empty for any.
    pub model: String,
    /// Name of what runs, for the log.
    pub chunk: String,
    /// What chat templates have as now, in seconds of Unix time; none for the time of each row.
    pub time: Option<u64>,
}

/// `DataFusion` has a macro for this. Its entries lack the prefix, and are lost on their way to the executors of a
/// cluster.
impl ExtensionOptions for Settings {
    fn as_any(&self) -> &dyn Any {
        self
    }

    fn as_any_mut(&mut self) -> &mut dyn Any {
        self
    }

    fn cloned(&self) -> Box<dyn ExtensionOptions> {
        Box::new(self.clone())
    }

    fn set(&mut self, key: &str, value: &str) -> Result<()> {
        match key {
            "seed" => {
                let wrong = || {
                    config_datafusion_err!(
                        "setun.seed is `{value}`, expected an integer of 0 or more"
                    )
                };
                self.seed = value.parse().map_err(|_| wrong())?;
            }
            "model" => value.clone_into(&mut self.model),
            "chunk" => value.clone_into(&mut self.chunk),
            "time" if value.is_empty() => self.time = None,
            "time" => {
                let wrong = || {
                    config_datafusion_err!(
                        "setun.time is `{value}`, expected seconds of Unix time, or nothing"
                    )
                };
                let time = value.parse().map_err(|_| wrong())?;
                self.time =
                    Some(time).filter(|time| *time <= LAST_TIME).ok_or_else(wrong).map(Some)?;
            }
            _ => {
                return config_err!(
                    "no setting `setun.{key}`, expected seed, model, chunk or time"
                );
            }
        }
        Ok(())
    }

    fn entries(&self) -> Vec<ConfigEntry> {
        let entry = |name: &str, value: String, description| {
            let key = format!("{}.{name}", Self::PREFIX);
            ConfigEntry { key, value: Some(value), description }
        };
        vec![
            entry("seed", self.seed.to_string(), "Seed of the job"),
            entry("model", self.model.clone(), "Fingerprint that the model must have"),
            entry("chunk", self.chunk.clone(), "Name of what runs"),
            entry(
                "time",
                self.time.map(|time| time.to_string()).unwrap_or_default(),
                "What chat templates have as now, in seconds of Unix time",
            ),
        ]
    }
}

impl ConfigExtension for Settings {
    const PREFIX: &'static str = "setun";
}

/// The last second of the year 9999.
const LAST_TIME: u64 = 253_402_300_799;

impl Settings {
    /// Those of a job with this seed that begins now.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self { seed, time: Some(unix_time()), ..Self::default() }
    }

    /// The settings of a query.
    pub(crate) fn of(options: &ConfigOptions) -> Self {
        options.extensions.get::<Self>().cloned().unwrap_or_default()
    }

    /// The seed of the row with this key: [`setun::row_seed`].
    #[must_use]
    pub fn row_seed(&self, key: &str) -> u64 {
        setun::row_seed(self.seed, key)
    }
}

/// Seconds of Unix time.
pub(crate) fn unix_time() -> u64 {
    let elapsed = SystemTime::now().duration_since(UNIX_EPOCH);
    elapsed.map_or(0, |elapsed| elapsed.as_secs())
}
