//! Writing files so that each is there whole or not at all.

use std::{
    fs::{self, File, OpenOptions},
    io::Write,
    path::{Path, PathBuf},
};

use super::error::RegistryError;

/// A path with something after its name.
pub(super) fn with_end(path: &Path, end: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(end);
    name.into()
}

/// Makes a folder and those above it.
pub(super) fn make_folder(path: &Path) -> Result<(), RegistryError> {
    fs::create_dir_all(path).map_err(|error| RegistryError::io("make", path, 0, error))
}

/// Writes beside the file, and takes its place once the bytes are on the disk.
pub(super) fn write_atomically(path: &Path, bytes: &[u8]) -> Result<(), RegistryError> {
    let beside = with_end(path, ".tmp");
    let write = || {
        let mut file = File::create(&beside)?;
        file.write_all(bytes)?;
        file.sync_all()
    };
    if let Err(error) = write() {
        let _ = fs::remove_file(&beside);
        return Err(RegistryError::io("write", path, bytes.len() as u64, error));
    }
    replace(&beside, path)
}

/// Gives a file its name, durably: the folder too is on the disk before this returns.
pub(super) fn replace(from: &Path, to: &Path) -> Result<(), RegistryError> {
    fs::rename(from, to).map_err(|error| RegistryError::io("rename", from, 0, error))?;
    sync_folder(to.parent().unwrap_or(Path::new(".")))
}

/// A rename is in the folder, which has to reach the disk by itself. Windows has no such call.
pub(super) fn sync_folder(folder: &Path) -> Result<(), RegistryError> {
    if cfg!(unix) {
        let synced = File::open(folder).and_then(|folder| folder.sync_all());
        synced.map_err(|error| RegistryError::io("write", folder, 0, error))?;
    }
    Ok(())
}

/// Removes a file that may not be there.
pub(super) fn remove_file(path: &Path) -> Result<(), RegistryError> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(RegistryError::io("remove", path, 0, error))
        }
        _ => Ok(()),
    }
}

/// Opens a file to read and write, and makes it where it is not there.
pub(super) fn open_or_make(path: &Path) -> Result<File, RegistryError> {
    if let Some(folder) = path.parent() {
        make_folder(folder)?;
    }
    let mut options = OpenOptions::new();
    let file = options.read(true).write(true).create(true).truncate(false).open(path);
    file.map_err(|error| RegistryError::io("open", path, 0, error))
}

/// Bytes that a file takes on the disk: less than its length where it has holes.
pub(super) fn disk_bytes(metadata: &fs::Metadata) -> u64 {
    #[cfg(unix)]
    {
        use std::os::unix::fs::MetadataExt;
        metadata.blocks().saturating_mul(512).min(metadata.len())
    }
    #[cfg(not(unix))]
    metadata.len()
}
