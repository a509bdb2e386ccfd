//! A model's files in a folder.

use std::{
    collections::{BTreeMap, btree_map::Entry},
    fs::File,
    io::{self, ErrorKind, Read, Seek, SeekFrom},
    path::{Path, PathBuf},
};

use setun_checkpoint::Want;

use crate::error::Error;

/// Files that are wanted whole (configurations, tokenizers) are far smaller.
const WHOLE_FILE_LIMIT: u64 = 256 << 20;

/// Reads what a [`Loader`](crate::Loader) wants from a folder. Files stay open once read from,
/// until they are closed.
#[derive(Debug)]
pub struct Files {
    folder: PathBuf,
    open: BTreeMap<String, File>,
}

impl Files {
    /// The files of a folder, which need not exist yet.
    #[must_use]
    pub fn new(folder: impl Into<PathBuf>) -> Self {
        Self { folder: folder.into(), open: BTreeMap::new() }
    }

    /// Replaces `bytes` by what is wanted, or by as much of it as the file has. False where there
    /// is no such file.
    ///
    /// # Errors
    ///
    /// If the file is there and cannot be read.
    pub fn read(&mut self, want: &Want, bytes: &mut Vec<u8>) -> Result<bool, Error> {
        bytes.clear();
        let path = self.folder.join(&want.file);
        self.read_from(&path, want, bytes).map_err(|source| Error::Io { path, source })
    }

    /// Closes all files; one that is read from again is opened again.
    pub fn close(&mut self) {
        self.open.clear();
    }

    fn read_from(&mut self, path: &Path, want: &Want, bytes: &mut Vec<u8>) -> io::Result<bool> {
        let file = match self.open.entry(want.file.clone()) {
            Entry::Occupied(entry) => entry.into_mut(),
            Entry::Vacant(entry) => match File::open(path) {
                Ok(file) => entry.insert(file),
                Err(error) if error.kind() == ErrorKind::NotFound => return Ok(false),
                Err(error) => return Err(error),
            },
        };
        let range = want.range.clone().unwrap_or(0..WHOLE_FILE_LIMIT);
        file.seek(SeekFrom::Start(range.start))?;
        file.take(range.end.saturating_sub(range.start)).read_to_end(bytes)?;
        Ok(true)
    }
}
