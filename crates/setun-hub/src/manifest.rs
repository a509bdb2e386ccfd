//! Manifest of a stored model: `manifest.json` in its folder.

use std::{collections::BTreeSet, path::Path, time::SystemTime};

use serde::{Deserialize, Serialize};

use crate::{
    digest::Digest,
    error::Error,
    model_name::is_safe_file,
    small_files::{FORMAT, SmallFile, Unusable, parse_format, read_small, write_small},
};

/// Name of the file.
pub(crate) const MANIFEST: &str = "manifest.json";

/// Least and most bytes of a chunk that a manifest may have.
pub(crate) const CHUNK_BYTES: std::ops::RangeInclusive<u64> = 4 << 10..=1 << 30;

/// Manifest of a stored model: its origin, its files and their hashes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Manifest {
    /// Version of this format.
    pub format: u32,
    /// The model's name.
    pub model: String,
    /// The commit of a hub's repository; of an address what its files were known by.
    pub revision: String,
    /// Where it came from: a repository, a folder or a file.
    pub source: String,
    /// Name of the licence, where the hub names one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub licence: Option<String>,
    /// When it was pulled, in UTC: `2026-11-21T17:00:00Z`.
    pub pulled: String,
    /// Whether all files are there. One that is not complete is never listed.
    pub complete: bool,
    /// Its files.
    pub files: Vec<FileEntry>,
}

/// A file of a model.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct FileEntry {
    /// Its name in the model's folder, with slashes.
    pub name: String,
    /// Its size.
    pub bytes: u64,
    /// What the server knew it by.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub etag: Option<String>,
    /// The hash of the whole file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sha256: Option<Digest>,
    /// Bytes of each chunk but the last.
    #[serde(default)]
    pub chunk_bytes: u64,
    /// The hash of each chunk, in order.
    #[serde(default)]
    pub chunks: Vec<Digest>,
}

impl Manifest {
    pub(crate) fn new(model: String, revision: String, source: String) -> Self {
        let (format, pulled, files) = (FORMAT, now(), vec![]);
        Self { format, model, revision, source, licence: None, pulled, complete: false, files }
    }

    /// A file by its name.
    #[must_use]
    pub fn file(&self, name: &str) -> Option<&FileEntry> {
        self.files.iter().find(|file| file.name == name)
    }

    /// Bytes of all files.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.files.iter().map(|file| file.bytes).fold(0, u64::saturating_add)
    }

    /// Adds files, or replaces those of the same names.
    pub(crate) fn put(&mut self, files: Vec<FileEntry>) {
        self.files.retain(|old| files.iter().all(|new| new.name != old.name));
        self.files.extend(files);
        self.files.sort_by(|a, b| a.name.cmp(&b.name));
    }

    /// The manifest of a folder; `None` where there is none that can be used.
    pub(crate) fn read(folder: &Path) -> Result<Option<Self>, Error> {
        Self::look(folder).map(SmallFile::found)
    }

    /// What a folder has as its manifest.
    pub(crate) fn look(folder: &Path) -> Result<SmallFile<Self>, Error> {
        read_small(&folder.join(MANIFEST), Self::parse)
    }

    /// Reads and checks it; the reason where it cannot be used.
    pub(crate) fn parse(bytes: &[u8]) -> Result<Self, Unusable> {
        let manifest: Self = parse_format(bytes)?;
        let mut names = BTreeSet::new();
        for file in &manifest.files {
            file.check().map_err(Unusable::Damaged)?;
            if !names.insert(file.name.as_str()) {
                return Err(Unusable::Damaged(format!("it has `{}` twice", file.name)));
            }
        }
        Ok(manifest)
    }

    pub(crate) fn write(&self, folder: &Path) -> Result<(), Error> {
        write_small(&folder.join(MANIFEST), self)
    }
}

impl FileEntry {
    fn check(&self) -> Result<(), String> {
        let Self { name, bytes, chunk_bytes, chunks, .. } = self;
        if !is_safe_file(name) {
            return Err(format!("the file name `{name}` is not one of this folder"));
        }
        let expected = if *chunk_bytes > 0 { bytes.div_ceil(*chunk_bytes) } else { 0 };
        if !chunks.is_empty()
            && (!CHUNK_BYTES.contains(chunk_bytes) || chunks.len() as u64 != expected)
        {
            let found = chunks.len();
            return Err(format!(
                "`{name}`: expected {expected} chunks of {chunk_bytes} bytes, found {found}"
            ));
        }
        Ok(())
    }
}

/// The time in UTC, as a manifest writes it.
pub(crate) fn now() -> String {
    humantime::format_rfc3339_seconds(SystemTime::now()).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(format: u32, name: &str, chunks: usize) -> String {
        let chunks = vec![format!("\"{}\"", "ab".repeat(32)); chunks].join(",");
        format!(
            "{{\"format\":{format},\"model\":\"h/o/n\",\"revision\":\"r\",\"source\":\"s\",\"pulled\":\"p\",\
             \"complete\":true,\"files\":[{{\"name\":\"{name}\",\"bytes\":10000,\"chunk_bytes\":4096,\
             \"chunks\":[{chunks}]}}]}}"
        )
    }

    #[test]
    fn what_contradicts_itself_is_refused() {
        assert!(Manifest::parse(text(1, "a.gguf", 3).as_bytes()).is_ok());
        assert!(Manifest::parse(text(1, "a.gguf", 0).as_bytes()).is_ok());
        for (format, name, chunks, reason) in [
            (2, "a.gguf", 3, "format 2"),
            (1, "../a.gguf", 3, "../a.gguf"),
            (1, "a.gguf", 2, "expected 3 chunks"),
        ] {
            let error = Manifest::parse(text(format, name, chunks).as_bytes()).unwrap_err();
            let (Unusable::Damaged(found) | Unusable::Later(found)) = error;
            assert!(found.contains(reason), "{found}");
        }
    }
}
