//! Keys of clients, kept as hashes and compared in constant time.

use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard};

use axum::http::{HeaderMap, HeaderValue, header::AUTHORIZATION};
use sha2::{Digest, Sha256};
use subtle::{Choice, ConstantTimeEq};

use crate::error::ApiError;

/// The header of a key in the API of Anthropic.
const KEY_HEADER: &str = "x-api-key";

/// Keys of which a request needs one. Only their hashes are kept. Clones share them.
#[derive(Clone, Default)]
pub struct ApiKeys(Arc<RwLock<Vec<KeyHash>>>);

/// The hash of a key.
pub(crate) type KeyHash = [u8; 32];

/// Why keys cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ApiKeysError {
    /// There are none.
    #[error("there is no key, expected one or more, each on a line")]
    None,

    /// One cannot be sent in a header.
    #[error("line {line} is no key, expected visible characters of ASCII")]
    Invalid {
        /// Its line, from 1.
        line: usize,
    },
}

impl ApiKeys {
    /// Reads keys, one a line; empty lines and those that begin with `#` are left out.
    ///
    /// # Errors
    ///
    /// If there is no key, or one has characters that are not visible ASCII.
    pub fn parse(text: &str) -> Result<Self, ApiKeysError> {
        let lines = (1..).zip(text.lines().map(str::trim));
        let is_key = |(_, line): &(usize, &str)| !line.is_empty() && !line.starts_with('#');
        let hash = |(line, key): (usize, &str)| {
            let is_visible = key.bytes().all(|byte| byte.is_ascii_graphic());
            if is_visible { Ok(hash(key.as_bytes())) } else { Err(ApiKeysError::Invalid { line }) }
        };
        let hashes = lines.filter(is_key).map(hash).collect::<Result<Vec<_>, _>>()?;
        if hashes.is_empty() { Err(ApiKeysError::None) } else { Ok(Self(Arc::new(hashes.into()))) }
    }

    /// Takes the keys of another in place of these, for requests to come.
    pub fn replace(&self, other: &Self) {
        let hashes = other.read().clone();
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = hashes;
    }

    /// Whether requests need no key.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.read().is_empty()
    }

    /// Whether there are several.
    pub(crate) fn are_several(&self) -> bool {
        self.read().len() > 1
    }

    /// The hash of the key that is asked for, if there is one.
    pub(crate) fn find(&self, is_it: impl Fn(&KeyHash) -> bool) -> Option<KeyHash> {
        self.read().iter().find(|key| is_it(key)).copied()
    }

    /// Checks the key of a request; its hash. Without keys every request is taken.
    pub(crate) fn check(&self, headers: &HeaderMap) -> Result<Option<KeyHash>, ApiError> {
        let hashes = self.read();
        if hashes.is_empty() {
            return Ok(None);
        }
        let header = headers.get(KEY_HEADER).map(HeaderValue::as_bytes);
        let mut given = bearer(headers).into_iter().chain(header).map(hash);
        let key = given.find(|key| is_one_of(key, &hashes));
        key.map(Some).ok_or_else(ApiError::bad_key)
    }

    fn read(&self) -> RwLockReadGuard<'_, Vec<KeyHash>> {
        self.0.read().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whether a key is one of these: all are compared, each to its end.
fn is_one_of(key: &KeyHash, hashes: &[KeyHash]) -> bool {
    let found = hashes.iter().fold(Choice::from(0), |found, known| found | known.ct_eq(key));
    found.into()
}

impl std::fmt::Debug for ApiKeys {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "ApiKeys({})", self.read().len())
    }
}

fn hash(key: &[u8]) -> KeyHash {
    Sha256::digest(key).into()
}

/// The key after `Bearer`, whose name has any case.
fn bearer(headers: &HeaderMap) -> Option<&[u8]> {
    let value = headers.get(AUTHORIZATION)?.as_bytes();
    let (scheme, key) = value.split_at_checked("Bearer ".len())?;
    scheme.eq_ignore_ascii_case(b"Bearer ").then(|| key.trim_ascii())
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderName;

    use super::*;

    #[test]
    fn keys_are_lines() {
        let keys = ApiKeys::parse("# of the team\nfirst\n\n  second  \n").expect("two keys");
        let has = |key: &[u8]| is_one_of(&hash(key), &keys.read());
        assert!(has(b"first") && has(b"second"));
        assert!(!has(b"# of the team") && !has(b"firs") && !has(b""));
        assert_eq!(format!("{keys:?}"), "ApiKeys(2)", "no key is shown");
        assert_eq!(ApiKeys::parse("# none\n").expect_err("none"), ApiKeysError::None);
        let invalid = ApiKeysError::Invalid { line: 2 };
        assert_eq!(ApiKeys::parse("a\nb c\n").expect_err("a space"), invalid);
    }

    #[test]
    fn a_key_comes_after_bearer_or_in_a_header_of_its_own() {
        let keys = ApiKeys::parse("first").expect("a key");
        let check = |value: &'static str| {
            let value = HeaderValue::from_static(value);
            keys.check(&HeaderMap::from_iter([(AUTHORIZATION, value)])).is_ok()
        };
        assert!(check("Bearer first") && check("bearer  first"));
        assert!(!check("first") && !check("Basic first") && !check("Bearer firsts"));
        let by_header = |key: &'static str| {
            let key = HeaderValue::from_static(key);
            keys.check(&HeaderMap::from_iter([(HeaderName::from_static(KEY_HEADER), key)])).is_ok()
        };
        assert!(by_header("first") && !by_header("second"));
        assert!(keys.check(&HeaderMap::new()).is_err());
        assert!(ApiKeys::default().check(&HeaderMap::new()).is_ok());
    }
}
