//! Stored model and its size on the disk.

use std::{fs, path::PathBuf};

use serde::Serialize;

use crate::{error::Error, file_selection::choose_stored, manifest::Manifest, model_name::ModelId};

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
