//! Little-endian fields of a header that may not have arrived as a whole.

use crate::{error::CheckpointError, header::MAX_HEADER_BYTES};

/// Why the header could not be read to its end.
#[derive(Debug)]
pub(super) enum Stop {
    /// This many bytes of the file are needed, or more.
    More(u64),
    /// It is wrong.
    Bad(CheckpointError),
}

impl From<CheckpointError> for Stop {
    fn from(error: CheckpointError) -> Self {
        Self::Bad(error)
    }
}

/// Reads one field after the other.
pub(super) struct Cursor<'a> {
    file: &'a str,
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Cursor<'a> {
    pub(super) fn new(file: &'a str, bytes: &'a [u8]) -> Self {
        Self { file, bytes, at: 0 }
    }

    /// Bytes read so far.
    pub(super) fn at(&self) -> u64 {
        self.at as u64
    }

    /// The error of what was just read.
    pub(super) fn bad(&self, what: impl Into<String>) -> Stop {
        let (file, at) = (self.file.to_owned(), self.at());
        Stop::Bad(CheckpointError::Gguf { file, at, what: what.into() })
    }

    /// Bytes of a length that the file gives: it is compared with what has arrived, and nothing
    /// is allocated for it.
    pub(super) fn take(&mut self, length: u64) -> Result<&'a [u8], Stop> {
        let end = self.at().saturating_add(length);
        if end > MAX_HEADER_BYTES {
            return Err(Stop::Bad(CheckpointError::header_too_large(self.file, end)));
        }
        let taken = usize::try_from(end).ok().and_then(|end| self.bytes.get(self.at..end));
        let taken = taken.ok_or(Stop::More(end))?;
        self.at += taken.len();
        Ok(taken)
    }

    fn array<const SIZE: usize>(&mut self) -> Result<[u8; SIZE], Stop> {
        let mut array = [0; SIZE];
        array.copy_from_slice(self.take(SIZE as u64)?);
        Ok(array)
    }

    pub(super) fn u32(&mut self) -> Result<u32, Stop> {
        self.array().map(u32::from_le_bytes)
    }

    pub(super) fn u64(&mut self) -> Result<u64, Stop> {
        self.array().map(u64::from_le_bytes)
    }

    /// A length and this many bytes of UTF-8.
    pub(super) fn text(&mut self) -> Result<&'a str, Stop> {
        let length = self.u64()?;
        let bytes = self.take(length)?;
        std::str::from_utf8(bytes).map_err(|_| self.bad("a text before it is not UTF-8"))
    }
}
