//! Settings of a job, by their names in `SET`.

use std::any::Any;

use datafusion::{
    common::{config_datafusion_err, config_err},
    config::{ConfigEntry, ConfigExtension, ConfigOptions, ExtensionOptions},
    error::Result,
};
use sha2::{Digest, Sha256};

/// Settings of the functions: `SET setun.seed = 7`.
#[derive(Clone, Debug, Default)]
pub struct Settings {
    /// Seed of the job. That of a row is a hash of it and the row's key.
    pub seed: u64,
    /// Fingerprint that the model must have, as `model()` gives it; empty for any.
    pub model: String,
    /// Name of what runs, for the log.
    pub chunk: String,
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
            _ => return config_err!("no setting `setun.{key}`, expected seed, model or chunk"),
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
        ]
    }
}

impl ConfigExtension for Settings {
    const PREFIX: &'static str = "setun";
}

/// Seeds are kept below 2^53, so that a JSON number holds them.
const SEED_BITS: u32 = 53;

impl Settings {
    /// Those of a job with this seed.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self { seed, ..Self::default() }
    }

    /// The settings of a query.
    pub(crate) fn of(options: &ConfigOptions) -> Self {
        options.extensions.get::<Self>().cloned().unwrap_or_default()
    }

    /// The seed of the row with this key: the first 53 bits of SHA-256 over the job's seed, as 8
    /// bytes with the least first, and the key.
    #[must_use]
    pub fn row_seed(&self, key: &str) -> u64 {
        let hash = Sha256::new().chain_update(self.seed.to_le_bytes()).chain_update(key).finalize();
        let first = hash.iter().take(8).fold(0, |seed, &byte| seed << 8 | u64::from(byte));
        first >> (u64::BITS - SEED_BITS)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seeds_depend_on_the_job_and_the_key_alone() {
        let seed = |seed, key| Settings::new(seed).row_seed(key);
        // By Python's hashlib: int.from_bytes(sha256(seed.to_bytes(8, "little") + key).digest()[:8]) >> 11
        assert_eq!(seed(0, "a"), 7_599_624_311_884_297);
        assert_eq!(seed(7, "Once"), 7_596_307_844_882_433);
        assert_ne!(seed(0, "a"), seed(1, "a"));
        assert_ne!(seed(0, "a"), seed(0, "b"));
        assert!((0..99).all(|job| seed(job, "") < 1 << 53));
    }
}
