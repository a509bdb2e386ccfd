//! Hashes of a stored file, and their comparison with those of its pull.

use std::{
    fs::File,
    io::{Read, Seek},
    path::Path,
};

use serde::Serialize;

use crate::{
    atomic_files::open_regular,
    digest::{BUFFER_BYTES, Digest, Hasher},
    error::Error,
    journal::JournalHeader,
    manifest::FileEntry,
    options::PullOptions,
};

/// What reading a file again has shown.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct FileCheck {
    /// Its name.
    pub file: String,
    /// Bytes that it has.
    pub bytes: u64,
    /// Whether it is as it was pulled.
    pub good: bool,
    /// Why not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
    /// The chunks that differ.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub chunks: Vec<u64>,
}

/// Reads a file of a model and compares it.
///
/// # Errors
///
/// If it was cancelled. A file that differs, or cannot be read, is no error.
pub(crate) fn check_file(
    folder: &Path,
    entry: &FileEntry,
    options: &PullOptions,
) -> Result<FileCheck, Error> {
    let mut check = FileCheck {
        file: entry.name.clone(),
        bytes: 0,
        good: false,
        problem: None,
        chunks: vec![],
    };
    check.problem = match open_regular(&folder.join(&entry.name)) {
        Ok(mut file) => compare(&mut file, entry, &mut check, options)?,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            Some("it is not there".into())
        }
        Err(error) => Some(unreadable(&error)),
    };
    check.good = check.problem.is_none();
    Ok(check)
}

/// What is wrong with a file, if anything.
fn compare(
    file: &mut File,
    entry: &FileEntry,
    check: &mut FileCheck,
    options: &PullOptions,
) -> Result<Option<String>, Error> {
    match file.metadata() {
        Ok(found) => check.bytes = found.len(),
        Err(error) => return Ok(Some(unreadable(&error))),
    }
    if check.bytes != entry.bytes {
        return Ok(Some(format!("expected {} bytes, found {}", entry.bytes, check.bytes)));
    }
    // Chunks say more than the whole, and each byte is in one.
    for (chunk, expected) in (0..).zip(&entry.chunks) {
        options.check_cancelled()?;
        let start = entry.chunk_bytes * chunk;
        let end = (start + entry.chunk_bytes).min(entry.bytes);
        match Digest::of_range(file, start..end) {
            Ok(found) if found == *expected => {}
            Ok(_) => check.chunks.push(chunk),
            Err(error) => return Ok(Some(unreadable(&error))),
        }
    }
    if let Some(first) = check.chunks.first() {
        let (count, all) = (check.chunks.len(), entry.chunks.len());
        return Ok(Some(format!("{count} of {all} chunks differ, the first is {first}")));
    }
    let Some(expected) = entry.sha256.filter(|_| entry.chunks.is_empty()) else { return Ok(None) };
    let subject = JournalHeader::new(entry.bytes, options.own_chunk_bytes(), None, None);
    match FileDigests::read(file, Path::new(&entry.name), &subject, options) {
        Ok(found) if found.whole == expected => Ok(None),
        Ok(found) => Ok(Some(format!("expected SHA-256 {expected}, found {}", found.whole))),
        Err(Error::Io { source, .. }) => Ok(Some(unreadable(&source))),
        Err(error) => Err(error),
    }
}

/// Hashes of what a file has.
pub(crate) struct FileDigests {
    pub(crate) whole: Digest,
    pub(crate) chunks: Vec<Digest>,
}

impl FileDigests {
    /// Reads a file once, with the chunks of `subject`. `path` is what errors name.
    pub(crate) fn read(
        file: &mut File,
        path: &Path,
        subject: &JournalHeader,
        options: &PullOptions,
    ) -> Result<Self, Error> {
        let failed = |error| Error::io("read", path, 0, error);
        file.rewind().map_err(failed)?;
        let mut buffer = vec![0; BUFFER_BYTES];
        let (mut whole, mut chunks) = (Hasher::new(), vec![]);
        for chunk in 0..subject.chunks() {
            options.check_cancelled()?;
            let range = subject.range(chunk);
            let (mut left, mut hasher) = (range.end - range.start, Hasher::new());
            while left > 0 {
                let most = usize::try_from(left).unwrap_or(usize::MAX).min(buffer.len());
                let read = file.read(&mut buffer[..most]).map_err(failed)?;
                if read == 0 {
                    break; // its hash will not be that of the chunk
                }
                hasher.add(&buffer[..read]);
                whole.add(&buffer[..read]);
                left -= read as u64;
            }
            chunks.push(hasher.finish());
        }
        Ok(Self { whole: whole.finish(), chunks })
    }
}

fn unreadable(error: &std::io::Error) -> String {
    format!("it cannot be read: {error}")
}
