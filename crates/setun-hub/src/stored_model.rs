//! Stored model: what to open, its verification, its size on the disk.

use std::{fs, path::PathBuf};

use serde::Serialize;

use crate::{
    error::Error,
    file_check::{FileCheck, check_file},
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
        self.manifest.complete && self.missing().is_none()
    }

    /// Reads all files and compares them with the hashes of the pull. `read` hears how many
    /// bytes of each file it is about to read.
    ///
    /// # Errors
    ///
    /// If it was cancelled. A file that differs, or cannot be read, is no error here.
    pub fn verify(
        &self,
        options: &PullOptions,
        mut read: impl FnMut(&FileEntry),
    ) -> Result<Vec<FileCheck>, Error> {
        let mut checks = vec![];
        for file in &self.manifest.files {
            read(file);
            checks.push(check_file(&self.folder, file, options)?);
        }
        Ok(checks)
    }

    /// Why it is not whole, by the sizes of its files; none where it is.
    pub(crate) fn missing(&self) -> Option<String> {
        self.manifest.files.iter().find_map(|file| {
            let FileEntry { name, bytes, .. } = file;
            match fs::metadata(self.folder.join(name)) {
                Ok(found) if !found.is_file() => Some(format!("`{name}` is no file")),
                Ok(found) if found.len() == *bytes => None,
                Ok(found) => Some(format!("`{name}` has {} bytes, expected {bytes}", found.len())),
                Err(error) => Some(format!("`{name}` cannot be read: {error}")),
            }
        })
    }
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
