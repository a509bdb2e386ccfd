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
    small_files::SmallFile,
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

    /// What there is in the folder of a revision.
    pub(crate) fn look(id: &ModelId, folder: PathBuf) -> Result<StoredRevision, Error> {
        let damaged = |folder, reason, pulled| {
            StoredRevision::Damaged(DamagedRevision { folder, reason, pulled })
        };
        Ok(match Manifest::look(&folder)? {
            SmallFile::Found(manifest) if manifest.complete => {
                let model = Self { id: id.clone(), folder, manifest };
                match model.missing() {
                    None => StoredRevision::Whole(model),
                    Some(reason) => damaged(model.folder, reason, Some(model.manifest.pulled)),
                }
            }
            // Something of a pull that goes on, or was broken off.
            SmallFile::Found(_) | SmallFile::Absent => StoredRevision::Absent,
            SmallFile::Damaged(reason) => {
                damaged(folder, format!("its manifest is damaged: {reason}"), None)
            }
        })
    }

    /// Why it is not whole, by the sizes of its files; none where it is.
    fn missing(&self) -> Option<String> {
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

/// What the store has of a revision, by its manifest and the sizes of its files.
#[derive(Debug)]
pub(crate) enum StoredRevision {
    /// All of it.
    Whole(StoredModel),
    /// It was whole, and is not any more.
    Damaged(DamagedRevision),
    /// Nothing, or part of a pull.
    Absent,
}

/// A revision that was whole.
#[derive(Debug)]
pub(crate) struct DamagedRevision {
    pub(crate) folder: PathBuf,
    /// What is wrong with it.
    pub(crate) reason: String,
    /// The time of its pull; none where its manifest cannot be read.
    pub(crate) pulled: Option<String>,
}

impl StoredRevision {
    /// The model, if it is whole.
    pub(crate) fn whole(self) -> Option<StoredModel> {
        match self {
            Self::Whole(model) => Some(model),
            Self::Damaged(_) | Self::Absent => None,
        }
    }

    /// The order of pulls. A damaged revision without a time may be the latest.
    pub(crate) fn pulled(&self) -> (bool, Option<&str>) {
        match self {
            Self::Absent => (false, None),
            Self::Whole(model) => (false, Some(&model.manifest.pulled)),
            Self::Damaged(damaged) => (damaged.pulled.is_none(), damaged.pulled.as_deref()),
        }
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
