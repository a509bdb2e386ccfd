//! The folder of a store: `files/ID.json` and `files/ID.jsonl`, `batches/ID.json`.

use std::{
    fs::{self, File, OpenOptions, TryLockError},
    io::{self, Write},
    path::{Path, PathBuf},
};

use serde::{Serialize, de::DeserializeOwned};

use super::error::FilesError;

/// Endings of names: records, contents, and what is being written of both.
const RECORD: &str = "json";
const CONTENT: &str = "jsonl";
const NEW: &str = "new";
const PART: &str = "part";

/// The folders of a store. Their names are ids of this server, never a client's words.
#[derive(Debug)]
pub(crate) struct Disk {
    files: PathBuf,
    batches: PathBuf,
    /// Held as long as the store is in use.
    _lock: File,
}

/// The records of a folder, and those that cannot be read.
pub(crate) struct Records<T> {
    pub(crate) whole: Vec<T>,
    pub(crate) damaged: Vec<String>,
}

impl Disk {
    /// Creates the folders where there are none, and takes them for this process.
    pub(crate) fn open(folder: &Path) -> Result<Self, FilesError> {
        let [files, batches] = ["files", "batches"].map(|name| folder.join(name));
        for folder in [&files, &batches] {
            create_folder(folder).map_err(|source| failed(folder, source))?;
        }
        let path = folder.join("lock");
        let lock = OpenOptions::new().create(true).write(true).truncate(false).open(&path);
        let lock = lock.map_err(|source| failed(&path, source))?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                return Err(FilesError::InUse { path: folder.to_owned() });
            }
            // Of a file system without locks.
            Err(TryLockError::Error(error)) if error.kind() == io::ErrorKind::Unsupported => {}
            Err(TryLockError::Error(source)) => return Err(failed(&path, source)),
        }
        Ok(Self { files, batches, _lock: lock })
    }

    pub(crate) fn read_files<T: DeserializeOwned>(&self) -> Result<Records<T>, FilesError> {
        read_records(&self.files)
    }

    pub(crate) fn read_batches<T: DeserializeOwned>(&self) -> Result<Records<T>, FilesError> {
        read_records(&self.batches)
    }

    /// The content of a file.
    pub(crate) fn content(&self, id: &str) -> PathBuf {
        self.files.join(id).with_extension(CONTENT)
    }

    /// The content of a file that is being written.
    pub(crate) fn part(&self, id: &str) -> PathBuf {
        self.files.join(id).with_extension(PART)
    }

    pub(crate) fn write_file(&self, id: &str, record: &impl Serialize) -> io::Result<()> {
        write_record(&self.files.join(id).with_extension(RECORD), record)
    }

    pub(crate) fn write_batch(&self, id: &str, record: &impl Serialize) -> io::Result<()> {
        write_record(&self.batches.join(id).with_extension(RECORD), record)
    }

    /// Removes a file: its record first, so that no record is left without its content.
    pub(crate) fn remove_file(&self, id: &str) -> io::Result<()> {
        remove(&self.files.join(id).with_extension(RECORD))?;
        remove(&self.content(id))
    }

    pub(crate) fn remove_batch(&self, id: &str) -> io::Result<()> {
        remove(&self.batches.join(id).with_extension(RECORD))
    }

    /// Removes what a process has left that ended in the middle of writing: parts, and contents that have no
    /// record and that no batch needs.
    pub(crate) fn remove_unfinished(
        &self,
        is_needed: impl Fn(&str) -> bool,
    ) -> Result<(), FilesError> {
        for folder in [&self.files, &self.batches] {
            for path in entries(folder)? {
                let id = path.file_stem().and_then(|stem| stem.to_str()).unwrap_or_default();
                let is_left = match path.extension().and_then(|ending| ending.to_str()) {
                    Some(NEW | PART) => true,
                    Some(CONTENT) => {
                        id.starts_with("file-")
                            && !path.with_extension(RECORD).exists()
                            && !is_needed(id)
                    }
                    _ => false,
                };
                if is_left {
                    remove(&path).map_err(|source| failed(&path, source))?;
                }
            }
        }
        Ok(())
    }
}

/// Bytes of a content; none where there is no such file.
pub(crate) fn length(path: &Path) -> io::Result<Option<u64>> {
    match fs::metadata(path) {
        Ok(found) => Ok(Some(found.len())),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// Has what was renamed in a folder stay so, whatever happens to the machine.
pub(crate) fn sync_folder(path: &Path) -> io::Result<()> {
    match path.parent() {
        Some(folder) if cfg!(unix) => File::open(folder)?.sync_all(),
        _ => Ok(()),
    }
}

/// Writes a record beside its place, and puts it there once it is whole.
fn write_record(path: &Path, record: &impl Serialize) -> io::Result<()> {
    let new = path.with_extension(NEW);
    let written = serde_json::to_vec(record).map_err(io::Error::from).and_then(|bytes| {
        let mut file = File::create(&new)?;
        file.write_all(&bytes)?;
        file.sync_all()
    });
    let put = written.and_then(|()| fs::rename(&new, path));
    if let Err(error) = put {
        let _ = fs::remove_file(&new);
        return Err(error);
    }
    sync_folder(path)
}

fn read_records<T: DeserializeOwned>(folder: &Path) -> Result<Records<T>, FilesError> {
    let mut records = Records { whole: vec![], damaged: vec![] };
    for path in entries(folder)? {
        if path.extension().is_none_or(|ending| ending != RECORD) {
            continue;
        }
        let bytes = fs::read(&path).map_err(|source| failed(&path, source))?;
        match serde_json::from_slice(&bytes) {
            Ok(record) => records.whole.push(record),
            Err(error) => records.damaged.push(format!("{}: {error}", path.display())),
        }
    }
    Ok(records)
}

fn entries(folder: &Path) -> Result<Vec<PathBuf>, FilesError> {
    let paths =
        |entries: fs::ReadDir| entries.map(|entry| entry.map(|entry| entry.path())).collect();
    fs::read_dir(folder).and_then(paths).map_err(|source| failed(folder, source))
}

fn remove(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// Creates a folder that others of the machine do not read.
fn create_folder(folder: &Path) -> io::Result<()> {
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(folder)
}

fn failed(path: &Path, source: io::Error) -> FilesError {
    FilesError::Io { path: path.to_owned(), source }
}
