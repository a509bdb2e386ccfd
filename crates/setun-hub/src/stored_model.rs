//! Stored model: what to open, its verification, its size on the disk.

use std::{
    fs::{self, File},
    path::PathBuf,
};

use serde::Serialize;

use crate::{
    digest::Digest,
    error::Error,
    file_selection::choose_stored,
    manifest::{FileEntry, Manifest},
    model_name::ModelId,
    options::PullOptions,
};

/// A model that is here whole.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct StoredModel {
    /// Its folders' names.
    pub id: ModelId,
    /// Its folder.
    pub folder: PathBuf,
    /// What is known of it.
    pub manifest: Manifest,
}

impl StoredModel {
    /// What to open: the model's folder, or a file in it. `file` is the one that is meant.
    ///
    /// # Errors
    ///
    /// If there is no such file, or several could be meant.
    pub fn path(&self, file: Option<&str>) -> Result<PathBuf, Error> {
        let names: Vec<_> = self.manifest.files.iter().map(|file| file.name.clone()).collect();
        let (name, folder) = (self.id.to_string(), self.folder.display().to_string());
        let choice = choose_stored(&name, &folder, &names, file)?;
        Ok(choice.entry().map_or_else(|| self.folder.clone(), |file| self.folder.join(file)))
    }

    /// Whether all files are there with their sizes.
    pub(crate) fn is_complete(&self) -> bool {
        self.manifest.complete
            && self.manifest.files.iter().all(|file| {
                fs::metadata(self.folder.join(&file.name))
                    .is_ok_and(|found| found.len() == file.bytes)
            })
    }

    /// Reads all files and compares them with the hashes of the pull. `read` hears how many
    /// bytes of each file it is about to read.
    ///
    /// # Errors
    ///
    /// If a file cannot be read, or it was cancelled. One that differs is no error here.
    pub fn verify(
        &self,
        options: &PullOptions,
        mut read: impl FnMut(&FileEntry),
    ) -> Result<Vec<FileCheck>, Error> {
        let mut checks = vec![];
        for file in &self.manifest.files {
            read(file);
            checks.push(self.check(file, options)?);
        }
        Ok(checks)
    }

    fn check(&self, entry: &FileEntry, options: &PullOptions) -> Result<FileCheck, Error> {
        let path = self.folder.join(&entry.name);
        let failed = |error| Error::io("read", &path, 0, error);
        let mut check = FileCheck {
            file: entry.name.clone(),
            bytes: 0,
            good: false,
            problem: None,
            chunks: vec![],
        };
        let mut file = match File::open(&path) {
            Ok(file) => file,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                check.problem = Some("it is not there".into());
                return Ok(check);
            }
            Err(error) => return Err(failed(error)),
        };
        check.bytes = file.metadata().map_err(failed)?.len();
        if check.bytes != entry.bytes {
            check.problem = Some(format!("expected {} bytes, found {}", entry.bytes, check.bytes));
            return Ok(check);
        }
        for (chunk, expected) in (0..).zip(&entry.chunks) {
            options.check_cancelled()?;
            let start = entry.chunk_bytes * chunk;
            let end = (start + entry.chunk_bytes).min(entry.bytes);
            if Digest::of_range(&mut file, start..end).map_err(failed)? != *expected {
                check.chunks.push(chunk);
            }
        }
        // Chunks say more than the whole, and each byte is in one.
        if entry.chunks.is_empty()
            && let Some(expected) = entry.sha256
        {
            let found = Digest::of_range(&mut file, 0..entry.bytes).map_err(failed)?;
            if found != expected {
                check.problem = Some(format!("expected SHA-256 {expected}, found {found}"));
            }
        }
        if let Some(first) = check.chunks.first() {
            let count = check.chunks.len();
            check.problem = Some(format!(
                "{count} of {} chunks differ, the first is {first}",
                entry.chunks.len()
            ));
        }
        check.good = check.problem.is_none();
        Ok(check)
    }
}

/// What reading a file again has shown.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct FileCheck {
    /// Its name.
    pub file: String,
    /// Bytes that were read.
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

/// What a revision of a model takes on the disk.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct DiskUsage {
    /// The model.
    pub model: String,
    /// Its revision.
    pub revision: String,
    /// Whether it is there whole.
    pub complete: bool,
    /// Bytes on the disk, those of an unfinished pull included.
    pub bytes: u64,
}
