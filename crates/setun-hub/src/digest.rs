//! SHA-256 of files and chunks.

use std::{
    fmt::{self, Write},
    fs::File,
    io::{Read, Seek, SeekFrom},
    ops::Range,
};

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use sha2::{Digest as _, Sha256};

/// Bytes that are read at a time.
pub(crate) const BUFFER_BYTES: usize = 256 << 10;

/// A SHA-256, written in hexadecimal digits.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Digest([u8; 32]);

impl Digest {
    /// Of bytes in memory.
    #[must_use]
    pub fn of(bytes: &[u8]) -> Self {
        Self(Sha256::digest(bytes).into())
    }

    /// Sixty-four hexadecimal digits.
    #[must_use]
    pub fn hex(&self) -> String {
        let mut text = String::with_capacity(64);
        for byte in self.0 {
            let _ = write!(text, "{byte:02x}");
        }
        text
    }

    /// Reads sixty-four hexadecimal digits.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let digits = text.as_bytes();
        if digits.len() != 64 || !digits.iter().all(u8::is_ascii_hexdigit) {
            return None;
        }
        let mut bytes = [0; 32];
        for (byte, digits) in bytes.iter_mut().zip(digits.chunks_exact(2)) {
            *byte = u8::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()?;
        }
        Some(Self(bytes))
    }

    /// Of a part of a file; of as much of it as there is.
    pub(crate) fn of_range(file: &mut File, range: Range<u64>) -> std::io::Result<Self> {
        let mut hasher = Hasher::new();
        file.seek(SeekFrom::Start(range.start))?;
        let mut part = file.take(range.end - range.start);
        let mut buffer = vec![0; BUFFER_BYTES];
        loop {
            match part.read(&mut buffer)? {
                0 => return Ok(hasher.finish()),
                read => hasher.add(&buffer[..read]),
            }
        }
    }
}

/// A hash of bytes that come piece by piece.
#[derive(Clone)]
pub(crate) struct Hasher(Sha256);

impl Hasher {
    pub(crate) fn new() -> Self {
        Self(Sha256::new())
    }

    pub(crate) fn add(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    pub(crate) fn finish(self) -> Digest {
        Digest(self.0.finalize().into())
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.hex())
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.hex())
    }
}

impl Serialize for Digest {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.hex())
    }
}

impl<'de> Deserialize<'de> for Digest {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        Self::parse(&text).ok_or_else(|| de::Error::custom("expected 64 hexadecimal digits"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hash_of_nothing() {
        let hex = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
        assert_eq!(Digest::of(b"").hex(), hex);
        assert_eq!(Digest::parse(hex), Some(Digest::of(b"")));
        assert_eq!(Digest::parse(&hex[1..]), None);
        assert_eq!(Digest::parse(&hex.replace('e', "g")), None);
    }
}
