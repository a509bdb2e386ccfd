//! Salts of the prefix cache, which keep clients from learning what others have sent.

use std::fmt::Write as _;

use sha2::{Digest, Sha256};

use crate::{api_keys::KeyHash, error::ApiError, fields::Fields};

/// The field of a request, by vLLM's name.
const FIELD: &str = "cache_salt";

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
    let bytes = hash.chain_update(own.unwrap_or_default()).finalize();
    bytes.iter().fold(String::new(), |mut salt, byte| {
        let _ = write!(salt, "{byte:02x}"); // a string takes all
        salt
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
}
