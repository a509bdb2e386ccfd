//! Files of a model in a folder.

#[cfg(not(target_family = "wasm"))]
use std::time::UNIX_EPOCH;
use std::{
    collections::{BTreeMap, btree_map::Entry},
    fs::File,
    io::{self, ErrorKind, Read, Seek, SeekFrom},
    ops::Range,
    path::{Path, PathBuf},
};

use setun_checkpoint::ReadRequest;

#[cfg(unix)]
use super::shared_read::{SHARED_BYTES, read_shared};
#[cfg(not(target_family = "wasm"))]
use super::{
    local_file::{FileIdentity, check_size, open_file},
    readahead::Readahead,
};
use crate::error::Error;

/// Files that are requested whole (configurations, tokenizers) are far smaller.
const WHOLE_FILE_LIMIT: u64 = 256 << 20;

/// Folders of weights, whose configuration and tokenizer may be in the folder above.
const WEIGHT_FOLDERS: [&str; 2] = ["gguf", "onnx"];

/// A model's files in a folder. They stay open once read from, until they are closed. Of a folder
/// that is named `onnx` or `gguf`, files that are missing are those of the folder above it, as
/// repositories have them.
#[derive(Debug)]
pub struct ModelFolder {
    folder: PathBuf,
    open: BTreeMap<String, File>,
    prefetch: usize,
    end: Option<(String, u64)>, // of what was read last
    #[cfg(not(target_family = "wasm"))]
    readahead: Option<(String, Readahead)>,
}

impl ModelFolder {
    /// The files of a folder, which need not exist yet.
    #[must_use]
    pub fn new(folder: impl Into<PathBuf>) -> Self {
        Self {
            folder: folder.into(),
            open: BTreeMap::new(),
            prefetch: 0,
            end: None,
            #[cfg(not(target_family = "wasm"))]
            readahead: None,
        }
    }

    /// Reads about this many bytes before they are requested, on a thread, where a file is read
    /// from one range to the next; 0 reads nothing before, and it is never more than a gibibyte.
    /// Not in WebAssembly. Default: 0.
    pub fn prefetch(&mut self, bytes: usize) {
        self.prefetch = bytes;
    }

    /// Replaces `bytes` by what is requested, or by as much of it as the file has. False where
    /// there is no such file.
    ///
    /// # Errors
    ///
    /// If the file is there and cannot be read.
    pub fn read(&mut self, want: &ReadRequest, bytes: &mut Vec<u8>) -> Result<bool, Error> {
        if let Some(range) = &want.range
            && self.take_readahead(&want.file, range, bytes)
        {
            return Ok(true);
        }
        let path = self.path(&want.file);
        self.read_from(&path, want, bytes).map_err(|source| Error::Io { path, source })
    }

    /// Size of a file; none where there is no such file.
    #[must_use]
    pub fn file_bytes(&self, file: &str) -> Option<u64> {
        self.path(file).metadata().ok().map(|found| found.len())
    }

    /// A text that changes when a file is written or replaced, of the file that is read; none where
    /// there is no such file.
    #[cfg(not(target_family = "wasm"))]
    pub fn file_version(&mut self, file: &str) -> Option<String> {
        let path = self.path(file);
        let metadata = self.open(&path, file).ok()??.metadata().ok()?;
        let FileIdentity { bytes, written, number: (_, number) } = FileIdentity::of(&metadata);
        // The device is left out: it may have another number after the next start of the system.
        let written = written?.duration_since(UNIX_EPOCH).ok()?.as_nanos();
        Some(format!("{bytes} bytes, written {written}, number {number}"))
    }

    fn path(&self, file: &str) -> PathBuf {
        let path = self.folder.join(file);
        let has_weights = WEIGHT_FOLDERS.iter().any(|name| self.folder.ends_with(name));
        if !has_weights || path.exists() {
            return path;
        }
        let above = self.folder.parent().map(|folder| folder.join(file));
        above.filter(|path| path.exists()).unwrap_or(path)
    }

    /// Closes all files; one that is read from again is opened again.
    pub fn close(&mut self) {
        #[cfg(not(target_family = "wasm"))]
        {
            self.readahead = None;
        }
        self.end = None;
        self.open.clear();
    }

    /// What was read before it was requested. Where that is not all, or it failed, it is to be read
    /// as if it had not been, so that errors are those of what is requested.
    #[cfg(not(target_family = "wasm"))]
    fn take_readahead(&mut self, name: &str, range: &Range<u64>, bytes: &mut Vec<u8>) -> bool {
        let is_next = |(file, ahead): &(String, Readahead)| file == name && ahead.is_next(range);
        self.readahead = self.readahead.take().filter(is_next);
        let begun = (name.to_owned(), range.start);
        if self.readahead.is_none() && self.prefetch > 0 && self.end.as_ref() == Some(&begun) {
            self.readahead = self.start_readahead(name, range.start).map(|ahead| (begun.0, ahead));
        }
        let Some((file, ahead)) = &mut self.readahead else { return false };
        bytes.clear();
        if ahead.take(range.clone(), bytes) {
            self.end = Some((file.clone(), range.end));
            return true;
        }
        self.readahead = None;
        false
    }

    /// The place in the file is the same for both handles, and only one of them is used at a time.
    #[cfg(not(target_family = "wasm"))]
    fn start_readahead(&mut self, name: &str, position: u64) -> Option<Readahead> {
        let mut file = self.open.get(name)?.try_clone().ok()?;
        file.seek(SeekFrom::Start(position)).ok()?;
        Readahead::start(file, position, self.prefetch)
    }

    #[cfg(target_family = "wasm")]
    #[expect(clippy::unused_self, reason = "there are threads elsewhere")]
    fn take_readahead(&mut self, _name: &str, _range: &Range<u64>, _bytes: &mut Vec<u8>) -> bool {
        false
    }

    /// A file, which stays open; none where there is none.
    fn open(&mut self, path: &Path, file: &str) -> io::Result<Option<&mut File>> {
        match self.open.entry(file.to_owned()) {
            Entry::Occupied(entry) => Ok(Some(entry.into_mut())),
            Entry::Vacant(entry) => match open_file(path) {
                Ok(file) => Ok(Some(entry.insert(file))),
                Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
                Err(error) => Err(error),
            },
        }
    }

    fn read_from(
        &mut self,
        path: &Path,
        want: &ReadRequest,
        bytes: &mut Vec<u8>,
    ) -> io::Result<bool> {
        let Some(file) = self.open(path, &want.file)? else {
            bytes.clear();
            return Ok(false);
        };
        if want.range.is_none() {
            check_size(file, WHOLE_FILE_LIMIT)?;
        }
        read_range(file, want.range.clone(), bytes)?;
        let end = want.range.as_ref().map_or(WHOLE_FILE_LIMIT, |range| range.end);
        self.end = Some((want.file.clone(), end));
        Ok(true)
    }
}

/// Replaces `bytes` by a range of a file, or as much of it as there is; without one by all of it.
fn read_range(file: &mut File, range: Option<Range<u64>>, bytes: &mut Vec<u8>) -> io::Result<()> {
    #[cfg(unix)]
    if let Some(range) = &range
        && range.end.saturating_sub(range.start) >= SHARED_BYTES
    {
        return read_shared(file, range.clone(), bytes);
    }
    let range = range.unwrap_or(0..WHOLE_FILE_LIMIT);
    bytes.clear();
    file.seek(SeekFrom::Start(range.start))?;
    file.take(range.end.saturating_sub(range.start)).read_to_end(bytes)?;
    Ok(())
}

/// WebAssembly has no other files than regular ones.
#[cfg(target_family = "wasm")]
fn open_file(path: &Path) -> io::Result<File> {
    File::open(path)
}

#[cfg(target_family = "wasm")]
#[expect(clippy::unnecessary_wraps, reason = "as elsewhere")]
fn check_size(_file: &File, _limit: u64) -> io::Result<()> {
    Ok(())
}

#[cfg(test)]
mod tests;
