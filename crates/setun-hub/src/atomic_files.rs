//! Atomic file writes.

use std::{
    fs::{self, File, OpenOptions},
    io::{Read, Write},
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

/// A rename is in the folder, which has to reach the disk by itself. Windows has no such call, and
/// some file systems of networks have none either.
pub(crate) fn sync_folder(folder: &Path) -> Result<(), Error> {
    use std::io::ErrorKind::{InvalidInput, Unsupported};
    if !cfg!(unix) {
        return Ok(());
    }
    match File::open(folder).and_then(|folder| folder.sync_all()) {
        Err(error) if ![InvalidInput, Unsupported].contains(&error.kind()) => {
            Err(Error::io("write", folder, 0, error))
        }
        _ => Ok(()),
    }
}

/// Removes what there is at a place of the store, a folder as well.
pub(crate) fn remove_any(path: &Path) -> Result<(), Error> {
    if fs::symlink_metadata(path).is_ok_and(|found| found.is_dir()) {
        return fs::remove_dir_all(path).map_err(|error| Error::io("remove", path, 0, error));
    }
    remove_file(path)
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

/// Opens a file to read. What is no file is refused by its type: to open a pipe waits.
pub(crate) fn open_regular(path: &Path) -> std::io::Result<File> {
    if fs::metadata(path)?.is_file() {
        return File::open(path);
    }
    Err(std::io::Error::new(std::io::ErrorKind::InvalidInput, "it is no file"))
}

/// The bytes of a file, of which at most `limit` are read.
pub(crate) fn read_regular(path: &Path, limit: u64) -> std::io::Result<Vec<u8>> {
    let mut bytes = vec![];
    open_regular(path)?.take(limit).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Opens a file to read and write, and makes it where it is not there.
pub(crate) fn open_or_make(path: &Path) -> Result<File, Error> {
    if let Some(folder) = path.parent() {
        make_folder(folder)?;
    }
    if fs::symlink_metadata(path).is_ok_and(|found| !found.is_file()) {
        remove_any(path)?;
    }
    let mut options = OpenOptions::new();
    let file = options.read(true).write(true).create(true).truncate(false).open(path);
    file.map_err(|error| Error::io("open", path, 0, error))
}

/// Bytes that a folder takes on the disk.
pub(crate) fn folder_bytes(folder: &Path) -> u64 {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let sizes = entries.filter_map(|entry| {
        let metadata = fs::symlink_metadata(entry.path()).ok()?;
        Some(if metadata.is_dir() { folder_bytes(&entry.path()) } else { disk_bytes(&metadata) })
    });
    sizes.fold(0, u64::saturating_add)
}

/// Bytes that a file takes on the disk: less than its length where it has holes.
fn disk_bytes(metadata: &fs::Metadata) -> u64 {
    #[cfg(unix)]
    {
        use std::os::unix::fs::MetadataExt;
        metadata.blocks().saturating_mul(512).min(metadata.len())
    }
    #[cfg(not(unix))]
    metadata.len()
}
