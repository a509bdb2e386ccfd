//! Seeds of the rows of a table.

use sha2::{Digest, Sha256};

/// Seeds are kept below 2^53, so that a JSON number holds them.
const SEED_BITS: u32 = 53;

/// The seed of the row with this key in a job with this seed: the first 53 bits of SHA-256 over the
/// job's seed, as 8 bytes with the least first, and the key. A row has the same seed wherever, in
/// what order and however often it runs.
#[must_use]
pub fn row_seed(job_seed: u64, key: &str) -> u64 {
    let hash = Sha256::new().chain_update(job_seed.to_le_bytes()).chain_update(key).finalize();
    let first = hash.iter().take(8).fold(0, |seed, &byte| seed << 8 | u64::from(byte));
    first >> (u64::BITS - SEED_BITS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seeds_depend_on_the_job_and_the_key_alone() {
        // By Python's hashlib: int.from_bytes(sha256(seed.to_bytes(8, "little") + key).digest()[:8]) >> 11
        assert_eq!(row_seed(0, "a"), 7_599_624_311_884_297);
        assert_eq!(row_seed(7, "Once"), 7_596_307_844_882_433);
        assert_ne!(row_seed(0, "a"), row_seed(1, "a"));
        assert_ne!(row_seed(0, "a"), row_seed(0, "b"));
        assert!((0..99).all(|job| row_seed(job, "") < 1 << 53));
    }
}
