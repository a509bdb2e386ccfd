//! Lock of a destination, and the note of what its holder writes.
//!
//! The lock is a hidden file beside the destination. The system releases it with its process,
//! however that ends; what a killed process had written is known from the note in the file.

use std::{
    fs::{self, File, TryLockError},
    io::{Read, Seek, Write},
    path::{Path, PathBuf},
    process,
    time::{SystemTime, UNIX_EPOCH},
};

use serde::{Deserialize, Serialize};

use super::write_error;
use crate::error::CliError;

/// Times that a lock is taken that its holder removes at the same moment.
const ATTEMPTS: usize = 1000;

/// Most bytes of a note that are read.
const MAX_NOTE: u64 = 1 << 20;

/// Held until the process ends, or the value is dropped.
pub(super) struct Lock {
    file: File,
    path: PathBuf,
    id: String,
    /// Names that are given just now, or that a killed process was about to give.
    unfinished: Vec<String>,
}

/// What the holder of a lock writes.
#[derive(Default, Serialize, Deserialize)]
struct Note {
    /// In the names of its parts.
    id: String,
    /// Names that it gives to its files.
    names: Vec<String>,
}

impl Lock {
    /// Takes the lock of this name in a folder, and removes the parts of a process that was
    /// killed with it. `destination` is what errors name.
    pub(super) fn take(folder: &Path, name: &str, destination: &Path) -> Result<Self, CliError> {
        let path = folder.join(name);
        let failed = write_error(&path);
        for _ in 0..ATTEMPTS {
            let mut options = File::options();
            options.read(true).write(true).create(true).truncate(false);
            let file = options.open(&path).map_err(&failed)?;
            let found = file.metadata().map_err(&failed)?;
            if let Some(found) = setun::other_than_file(&found) {
                return Err(CliError::NotAFile { path, found });
            }
            match file.try_lock() {
                Ok(()) => {}
                Err(TryLockError::WouldBlock) => {
                    return Err(CliError::Locked { path: destination.to_owned() });
                }
                // Some network file systems have no locks; the parts' names differ all the same.
                Err(TryLockError::Error(error))
                    if error.kind() == std::io::ErrorKind::Unsupported => {}
                Err(TryLockError::Error(error)) => return Err(failed(error)),
            }
            if !is_at(&file, &path) {
                continue; // its holder has removed it
            }
            let mut lock = Self { file, path, id: new_id(), unfinished: vec![] };
            lock.recover(folder)?;
            lock.write()?;
            return Ok(lock);
        }
        Err(CliError::Locked { path: destination.to_owned() })
    }

    /// Where it is.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// End of the names of parts.
    pub(super) fn ending(&self) -> String {
        ending(&self.id)
    }

    /// Whether a killed process was about to give this name.
    pub(super) fn was_unfinished(&self, name: &str) -> bool {
        self.unfinished.iter().any(|unfinished| unfinished == name)
    }

    /// Whether the note has to stay, because files are left of a killed process.
    pub(super) fn has_unfinished(&self) -> bool {
        !self.unfinished.is_empty()
    }

    /// All names are given.
    pub(super) fn finish(&mut self) {
        self.unfinished.clear();
    }

    /// Whether a file is the lock, or of a process that was killed.
    pub(super) fn is_own(&self, name: &str) -> bool {
        self.path.file_name().is_some_and(|own| own == name) || self.was_unfinished(name)
    }

    /// Notes the names that are given from now on, the most important last.
    pub(super) fn note(&mut self, names: &[String]) -> Result<(), CliError> {
        self.unfinished.retain(|name| !names.contains(name));
        self.unfinished.extend_from_slice(names);
        self.write()?;
        self.file.sync_all().map_err(write_error(&self.path))
    }

    fn write(&mut self) -> Result<(), CliError> {
        let note = Note { id: self.id.clone(), names: self.unfinished.clone() };
        let text = serde_json::to_string(&note).unwrap_or_default(); // texts alone always can
        let file = &mut self.file;
        let written = file
            .set_len(0)
            .and_then(|()| file.rewind())
            .and_then(|()| file.write_all(text.as_bytes()));
        written.map_err(write_error(&self.path))
    }

    /// Reads the note of a process that was killed, and removes its parts. A note that cannot be
    /// read says nothing.
    fn recover(&mut self, folder: &Path) -> Result<(), CliError> {
        let mut text = vec![];
        let read = (&self.file).take(MAX_NOTE).read_to_end(&mut text);
        read.map_err(write_error(&self.path))?;
        let Ok(Note { id, names }) = serde_json::from_slice(&text) else { return Ok(()) };
        // Where the last of them is there, they all are, or none is and the old model stands.
        if names.last().is_some_and(|key| !folder.join(key).exists()) {
            self.unfinished = names;
        }
        if id.is_empty() {
            return Ok(());
        }
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            if entry.file_name().to_string_lossy().ends_with(&ending(&id)) {
                fs::remove_file(entry.path()).map_err(write_error(&entry.path()))?;
            }
        }
        Ok(())
    }
}

fn ending(id: &str) -> String {
    format!(".{id}.part")
}

/// Differs between processes, and between the times of one process.
fn new_id() -> String {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    format!("{:x}-{:x}", process::id(), now.as_nanos())
}

/// Whether an open file still has its path.
fn is_at(file: &File, path: &Path) -> bool {
    #[cfg(unix)]
    {
        use super::identity::Identity;
        let open = file.metadata().ok().map(|found| Identity::of_metadata(&found));
        open.is_some() && open == Identity::of(path)
    }
    #[cfg(not(unix))]
    {
        let _ = file;
        path.exists()
    }
}
