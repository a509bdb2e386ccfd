//! Comparison of a stored file with the hashes of its pull.

use std::{fs::File, path::Path};

use serde::Serialize;

use crate::{
    atomic_files::open_regular, digest::Digest, error::Error, manifest::FileEntry,
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
    Ok(match Digest::of_range(file, 0..entry.bytes) {
        Ok(found) if found == expected => None,
        Ok(found) => Some(format!("expected SHA-256 {expected}, found {found}")),
        Err(error) => Some(unreadable(&error)),
    })
}

fn unreadable(error: &std::io::Error) -> String {
    format!("it cannot be read: {error}")
}
