//! Atomic file writes.

use std::{
    fs::{self, File, OpenOptions},
    io::Write,
    path::{Path, PathBuf},
};

use crate::error::Error;

/// A path with something after its name.
pub(crate) fn with_end(path: &Path, end: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(end);
    name.into()
}

/// Makes a folder and those above it.
pub(crate) fn make_folder(path: &Path) -> Result<(), Error> {
    fs::create_dir_all(path).map_err(|error| Error::io("make", path, 0, error))
}

/// Writes beside the file, and takes its place once the bytes are on the disk.
pub(crate) fn write_atomically(path: &Path, bytes: &[u8]) -> Result<(), Error> {
    let beside = with_end(path, ".tmp");
    let write = || {
        let mut file = File::create(&beside)?;
        file.write_all(bytes)?;
        file.sync_all()
    };
    if let Err(error) = write() {
        let _ = fs::remove_file(&beside);
        return Err(Error::io("write", path, bytes.len() as u64, error));
    }
    replace(&beside, path)
}

/// Gives a file its name, durably: the folder too is on the disk before this returns.
pub(crate) fn replace(from: &Path, to: &Path) -> Result<(), Error> {
    fs::rename(from, to).map_err(|error| Error::io("rename", from, 0, error))?;
    sync_folder(to.parent().unwrap_or(Path::new(".")))
}

/// A rename is in the folder, which has to reach the disk by itself. Windows has no such call.
pub(crate) fn sync_folder(folder: &Path) -> Result<(), Error> {
    if cfg!(unix) {
        let synced = File::open(folder).and_then(|folder| folder.sync_all());
        synced.map_err(|error| Error::io("write", folder, 0, error))?;
    }
    Ok(())
}

/// Removes a file that may not be there.
pub(crate) fn remove_file(path: &Path) -> Result<(), Error> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(Error::io("remove", path, 0, error))
        }
        _ => Ok(()),
    }
}

/// Opens a file to read and write, and makes it where it is not there.
pub(crate) fn open_or_make(path: &Path) -> Result<File, Error> {
    if let Some(folder) = path.parent() {
        make_folder(folder)?;
    }
    let mut options = OpenOptions::new();
    let file = options.read(true).write(true).create(true).truncate(false).open(path);
    file.map_err(|error| Error::io("open", path, 0, error))
}

/// Bytes that a file takes on the disk: less than its length where it has holes.
pub(crate) fn disk_bytes(metadata: &fs::Metadata) -> u64 {
    #[cfg(unix)]
    {
        use std::os::unix::fs::MetadataExt;
        metadata.blocks().saturating_mul(512).min(metadata.len())
    }
    #[cfg(not(unix))]
    metadata.len()
}
