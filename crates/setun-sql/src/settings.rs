//! Settings of a job, by their names in `SET`.

use datafusion::{
    common::extensions_options,
    config::{ConfigExtension, ConfigOptions},
};
use sha2::{Digest, Sha256};

extensions_options! {
    /// Settings of the functions: `SET setun.seed = 7`.
    pub struct Settings {
        /// Seed of the job. That of a row is a hash of it and the row's key.
        pub seed: u64, default = 0
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
        Self { seed }
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
        let seed = |seed, key| Settings { seed }.row_seed(key);
        // By Python's hashlib: int.from_bytes(sha256(seed.to_bytes(8, "little") + key).digest()[:8]) >> 11
        assert_eq!(seed(0, "a"), 7_599_624_311_884_297);
        assert_eq!(seed(7, "Once"), 7_596_307_844_882_433);
        assert_ne!(seed(0, "a"), seed(1, "a"));
        assert_ne!(seed(0, "a"), seed(0, "b"));
        assert!((0..99).all(|job| seed(job, "") < 1 << 53));
    }
}
