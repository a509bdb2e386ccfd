//! The first bytes of a container's file.

use std::ops::Range;

use super::{Hash, VERSION, hex, sha256};
use crate::{error::CheckpointError, header::MAX_HEADER_BYTES};

/// What every file of the format begins with.
pub(super) const MAGIC: [u8; 6] = *b"SETUN\0";

/// Bytes of magic, version and length: the head of version 0, and what the hash is of.
const HASHED_BYTES: usize = 16;

/// What stands before a manifest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Head {
    /// Version of the format.
    pub version: u16,
    /// Bytes of the manifest.
    pub manifest_bytes: u64,
    hash: Option<Hash>, // from version 1 on
}

impl Head {
    /// Bytes of the head of [`VERSION`].
    pub const BYTES: u64 = 48;

    /// How many bytes the head has in the file that begins with these eight.
    ///
    /// # Errors
    ///
    /// [`CheckpointError::ContainerVersion`] if the file's version is newer than [`VERSION`].
    pub fn bytes(file: &str, first: [u8; 8]) -> Result<u64, CheckpointError> {
        let [.., low, high] = first;
        match u16::from_le_bytes([low, high]) {
            0 => Ok(HASHED_BYTES as u64),
            1..=VERSION => Ok(Self::BYTES),
            found => {
                let file = file.to_owned();
                Err(CheckpointError::ContainerVersion { file, found, newest: VERSION })
            }
        }
    }

    /// Reads the head of a file, of which `bytes` are the first [`bytes`](Self::bytes).
    ///
    /// # Errors
    ///
    /// If the version is newer than [`VERSION`], or the manifest longer than 100 MB.
    pub fn parse(file: &str, bytes: &[u8]) -> Result<Self, CheckpointError> {
        let truncated = |expected| CheckpointError::Truncated {
            file: file.to_owned(),
            expected,
            found: bytes.len() as u64,
        };
        let (first, _) = bytes.split_first_chunk().ok_or_else(|| truncated(8))?;
        let length = Self::bytes(file, *first)?;
        if (bytes.len() as u64) < length {
            return Err(truncated(length));
        }
        let mut size = [0; 8];
        size.copy_from_slice(&bytes[8..HASHED_BYTES]);
        let manifest_bytes = u64::from_le_bytes(size);
        if manifest_bytes > MAX_HEADER_BYTES {
            return Err(CheckpointError::header_too_large(file, manifest_bytes));
        }
        let version = u16::from_le_bytes([bytes[6], bytes[7]]);
        let hash = bytes[HASHED_BYTES..].first_chunk().copied();
        Ok(Self { version, manifest_bytes, hash: hash.filter(|_| version > 0) })
    }

    /// Where the manifest lies in the file.
    #[must_use]
    pub fn manifest(&self) -> Range<u64> {
        let start = if self.version == 0 { HASHED_BYTES as u64 } else { Self::BYTES };
        start..start + self.manifest_bytes
    }

    /// Whether the manifest is the one that the head was written for.
    pub(super) fn verify(&self, file: &str, manifest: &[u8]) -> Result<(), CheckpointError> {
        let Some(expected) = &self.hash else {
            return Ok(());
        };
        let found = sha256(&[&hashed(self.version, self.manifest_bytes), manifest]);
        if found == *expected {
            return Ok(());
        }
        let (file, expected, found) = (file.to_owned(), hex(expected), hex(&found));
        Err(CheckpointError::ManifestHash { file, expected, found })
    }
}

/// The head of a manifest in the newest version.
pub(super) fn of(manifest: &[u8]) -> Vec<u8> {
    let first = hashed(VERSION, manifest.len() as u64);
    [&first[..], &sha256(&[&first, manifest])].concat()
}

fn hashed(version: u16, manifest_bytes: u64) -> Vec<u8> {
    [&MAGIC[..], &version.to_le_bytes(), &manifest_bytes.to_le_bytes()].concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn newer_versions_are_refused_by_name() {
        let mut bytes = of(b"{}");
        assert_eq!(bytes.len() as u64, Head::BYTES);
        let head = Head::parse("m.setun", &bytes).unwrap();
        assert_eq!((head.version, head.manifest()), (1, 48..50));
        assert_eq!(head.verify("m.setun", b"{}"), Ok(()));
        assert!(matches!(head.verify("m.setun", b"{ "), Err(CheckpointError::ManifestHash { .. })));
        bytes[6] = 2;
        let error = Head::parse("m.setun", &bytes).unwrap_err();
        assert_eq!(
            error.to_string(),
            "m.setun is of version 2 of the .setun format, this program reads up to 1: \
             update setun, or convert the model again with this one"
        );
    }

    #[test]
    fn short_heads_and_long_manifests_are_refused() {
        let whole = of(b"{}");
        for length in 0..whole.len() {
            let error = Head::parse("m", &whole[..length]).unwrap_err();
            assert!(matches!(error, CheckpointError::Truncated { .. }), "{length}: {error}");
        }
        let mut long = whole;
        long[12] = 1;
        let error = Head::parse("m", &long).unwrap_err();
        assert!(matches!(error, CheckpointError::HeaderTooLarge { .. }), "{error}");
    }
}
