//! Salts of the prefix cache, which keep clients from learning what others have sent.

use std::fmt::Write as _;

use sha2::{Digest, Sha256};

use crate::{api_keys::KeyHash, error::ApiError, fields::Fields};

/// The field of a request, by vLLM's name.
const FIELD: &str = "cache_salt";

/// Longest salt, in bytes, that the cache keeps as it is. A block keeps its salt as long as it is known.
const MAX_BYTES: usize = 64;

/// What the hash of a key begins with, so that it is none of the key itself.
const DOMAIN: &[u8] = b"setun cache salt";

/// Takes the salt of a request that has no other options of a generation.
pub(crate) fn read(fields: &mut Fields) -> Result<Option<String>, ApiError> {
    let salt = fields.text(FIELD)?;
    if salt.as_deref() == Some("") {
        return Err(ApiError::invalid(&fields.name(FIELD), "expected a non-empty string"));
    }
    Ok(salt)
}

/// The salt of a key, within which a request may have one of its own.
pub(crate) fn of_key(key: &KeyHash, own: Option<&str>) -> String {
    let hash = Sha256::new().chain_update(DOMAIN).chain_update(key);
    hex(hash.chain_update(own.unwrap_or_default()))
}

/// A salt, or the hash of one that is long: a client chooses its length.
pub(crate) fn bounded(salt: String) -> String {
    if salt.len() <= MAX_BYTES {
        salt
    } else {
        format!("sha256:{}", hex(Sha256::new().chain_update(salt)))
    }
}

fn hex(hash: Sha256) -> String {
    hash.finalize().iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}"); // a string takes all
        text
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_key_has_salts_of_its_own() {
        let keys = [[1; 32], [2; 32]];
        let all = keys.map(|key| [None, Some("a"), Some("b")].map(|own| of_key(&key, own)));
        let mut distinct = all.concat();
        distinct.sort();
        distinct.dedup();
        assert_eq!((distinct.len(), distinct[0].len()), (6, 64));
        assert_eq!(of_key(&keys[0], Some("a")), all[0][1]);
    }

    #[test]
    fn long_salts_take_the_place_of_short_ones_and_differ() {
        let [one, other, longest] = [("a", 100_000), ("b", 100_000), ("a", MAX_BYTES)]
            .map(|(letter, count)| bounded(letter.repeat(count)));
        assert!(one != other && one.len() == other.len() && one.len() < 2 * MAX_BYTES);
        assert_eq!(longest, "a".repeat(MAX_BYTES));
    }
}
