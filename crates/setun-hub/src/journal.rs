//! Journal of the chunks that have arrived: `FILE.chunks`, beside `FILE.part`.
//!
//! A chunk's bytes are on the disk before its line is written, so a line that can be read stands
//! for bytes that are there, whenever the process or the machine stopped. A line that was cut off
//! is ignored, and its chunk is requested again.

use std::{
    collections::BTreeMap,
    fs::{self, File, OpenOptions},
    io::{BufRead, BufReader, Write},
    path::{Path, PathBuf},
};

use serde::{Deserialize, Serialize};

use crate::{atomic_files::remove_any, digest::Digest, error::Error};

/// Version of this format.
const FORMAT: u32 = 1;

/// Longer lines are none of this format.
const LINE_BYTES: usize = 4096;

/// The file that a journal is of: all must be the same for a pull to go on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct JournalHeader {
    format: u32,
    pub(crate) bytes: u64,
    pub(crate) chunk_bytes: u64,
    /// What the server knows the file by.
    pub(crate) identity: Option<String>,
    /// The hash that the source reports for the whole file.
    pub(crate) sha256: Option<Digest>,
}

impl JournalHeader {
    pub(crate) fn new(
        bytes: u64,
        chunk_bytes: u64,
        identity: Option<String>,
        sha256: Option<Digest>,
    ) -> Self {
        Self { format: FORMAT, bytes, chunk_bytes, identity, sha256 }
    }

    /// Where a chunk lies in the file.
    pub(crate) fn range(&self, chunk: u64) -> std::ops::Range<u64> {
        let start = chunk.saturating_mul(self.chunk_bytes).min(self.bytes);
        start..start.saturating_add(self.chunk_bytes).min(self.bytes)
    }

    /// Number of chunks.
    pub(crate) fn chunks(&self) -> u64 {
        self.bytes.div_ceil(self.chunk_bytes)
    }
}

/// A line after the first.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Line {
    /// A chunk and its hash.
    Chunk(u64, Digest),
    /// The whole file's hash: it has been checked.
    Whole(Digest),
}

/// See the module.
#[derive(Debug)]
pub(crate) struct Journal {
    pub(crate) subject: JournalHeader,
    /// Hashes of the chunks that are there, by number.
    pub(crate) chunks: BTreeMap<u64, Digest>,
    /// Numbers in the order in which they came.
    pub(crate) order: Vec<u64>,
    pub(crate) whole: Option<Digest>,
    path: PathBuf,
    file: File,
}

impl Journal {
    /// Begins one, in place of any that was there.
    pub(crate) fn begin(path: PathBuf, subject: JournalHeader) -> Result<Self, Error> {
        remove_any(&path)?;
        let failed = |error| Error::io("write", &path, 0, error);
        let mut options = OpenOptions::new();
        let file = options.create_new(true).append(true).open(&path).map_err(failed)?;
        let mut journal =
            Self { subject, chunks: BTreeMap::new(), order: vec![], whole: None, path, file };
        let text = serde_json::to_string(&journal.subject).unwrap_or_default();
        journal.append(&text)?;
        Ok(journal)
    }

    /// Reads one; `None` where there is none, or none that can be read.
    pub(crate) fn read(path: &Path) -> Result<Option<Self>, Error> {
        let failed = |error| Error::io("read", path, 0, error);
        if fs::metadata(path).is_ok_and(|found| !found.is_file()) {
            return Ok(None); // to open a pipe waits
        }
        let file = match OpenOptions::new().read(true).append(true).open(path) {
            Ok(file) => file,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(failed(error)),
        };
        let mut lines = Lines { reader: BufReader::new(&file), good: 0 };
        let first = lines.next().map_err(failed)?;
        let subject = first.and_then(|line| serde_json::from_slice::<JournalHeader>(&line).ok());
        let Some(subject) = subject.filter(|found| found.format == FORMAT && found.chunk_bytes > 0)
        else {
            return Ok(None);
        };
        let (mut chunks, mut order, mut whole) = (BTreeMap::new(), vec![], None);
        let mut good = lines.good;
        while let Some(line) = lines.next().map_err(failed)? {
            match serde_json::from_slice(&line) {
                Ok(Line::Chunk(chunk, digest)) if chunk < subject.chunks() => {
                    chunks.insert(chunk, digest);
                    order.push(chunk);
                }
                Ok(Line::Whole(digest)) => whole = Some(digest),
                _ => break,
            }
            good = lines.good;
        }
        // What follows must not be glued to a line that was cut off.
        file.set_len(good).map_err(failed)?;
        Ok(Some(Self { subject, chunks, order, whole, path: path.to_owned(), file }))
    }

    /// Notes a chunk whose bytes are on the disk.
    pub(crate) fn add(&mut self, chunk: u64, digest: Digest) -> Result<(), Error> {
        self.append(&serde_json::to_string(&Line::Chunk(chunk, digest)).unwrap_or_default())?;
        self.chunks.insert(chunk, digest);
        self.order.push(chunk);
        Ok(())
    }

    /// Notes that the whole file has been checked.
    pub(crate) fn finish(&mut self, digest: Digest) -> Result<(), Error> {
        self.append(&serde_json::to_string(&Line::Whole(digest)).unwrap_or_default())?;
        let synced = self.file.sync_data();
        synced.map_err(|error| Error::io("write", &self.path, 0, error))?;
        self.whole = Some(digest);
        Ok(())
    }

    /// Forgets some chunks: the journal is written anew.
    pub(crate) fn forget(self, bad: &[u64]) -> Result<Self, Error> {
        let mut next = Self::begin(self.path, self.subject)?;
        for chunk in self.order {
            if let Some(digest) = self.chunks.get(&chunk)
                && !bad.contains(&chunk)
                && !next.chunks.contains_key(&chunk)
            {
                next.add(chunk, *digest)?;
            }
        }
        Ok(next)
    }

    /// Bytes of the chunks that are there.
    pub(crate) fn bytes(&self) -> u64 {
        let sizes = self.chunks.keys().map(|&chunk| self.subject.range(chunk));
        sizes.map(|range| range.end - range.start).sum()
    }

    /// The first chunk from here on that is not there.
    pub(crate) fn missing(&self, from: u64) -> Option<u64> {
        (from..self.subject.chunks()).find(|chunk| !self.chunks.contains_key(chunk))
    }

    fn append(&mut self, line: &str) -> Result<(), Error> {
        let written = self.file.write_all(format!("{line}\n").as_bytes());
        written.map_err(|error| Error::io("write", &self.path, 0, error))
    }
}

/// Whole lines of bounded length.
struct Lines<R> {
    reader: R,
    /// Bytes of the lines so far.
    good: u64,
}

impl<R: BufRead> Lines<R> {
    fn next(&mut self) -> std::io::Result<Option<Vec<u8>>> {
        use std::io::Read;
        let mut line = vec![];
        self.reader.by_ref().take(LINE_BYTES as u64).read_until(b'\n', &mut line)?;
        if line.pop() != Some(b'\n') {
            return Ok(None);
        }
        self.good += line.len() as u64 + 1;
        Ok(Some(line))
    }
}

/// Removes what is left of a file's pull.
pub(crate) fn discard(part: &Path, journal: &Path) -> Result<(), Error> {
    // The journal first: without it, bytes count for nothing.
    remove_any(journal)?;
    remove_any(part)
}

/// True for the names of what a pull leaves until it is done.
pub(crate) fn is_unfinished(name: &str) -> bool {
    [".part", ".chunks", ".tmp"].iter().any(|end| name.ends_with(end))
}

/// True where a folder has something of an unfinished pull.
pub(crate) fn has_unfinished(folder: &Path) -> bool {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries.into_iter().any(|entry| is_unfinished(&entry.file_name().to_string_lossy()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_that_was_cut_off_costs_its_chunk_alone() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.chunks");
        let subject = JournalHeader::new(100, 10, Some("\"e\"".into()), None);
        let mut journal = Journal::begin(path.clone(), subject.clone()).unwrap();
        let digests = [b"a", b"b", b"c"].map(|bytes| Digest::of(bytes));
        for (chunk, digest) in [4, 0, 7].into_iter().zip(digests) {
            journal.add(chunk, digest).unwrap();
        }
        assert_eq!(
            (journal.bytes(), journal.missing(0), journal.missing(4)),
            (30, Some(1), Some(5))
        );
        let text = fs::read(&path).unwrap();
        for length in 0..=text.len() {
            fs::write(&path, &text[..length]).unwrap();
            let Some(read) = Journal::read(&path).unwrap() else {
                assert!(!text[..length].contains(&b'\n'));
                continue;
            };
            let lines = text[..length].split(|byte| *byte == b'\n').count() - 1;
            assert_eq!(read.order, [4, 0, 7][..lines - 1]);
            assert_eq!(read.subject, subject);
            // The next entry begins a new line.
            let mut read = read;
            read.add(9, digests[0]).unwrap();
            assert_eq!(Journal::read(&path).unwrap().unwrap().order.last(), Some(&9));
        }
    }

    #[test]
    fn chunks_are_forgotten() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.chunks");
        let mut journal =
            Journal::begin(path.clone(), JournalHeader::new(25, 10, None, None)).unwrap();
        for chunk in [2, 1, 0] {
            journal.add(chunk, Digest::of(b"x")).unwrap();
        }
        assert_eq!((journal.bytes(), journal.missing(0)), (25, None));
        let journal = journal.forget(&[1]).unwrap();
        assert_eq!((journal.order.as_slice(), journal.missing(0)), ([2, 0].as_slice(), Some(1)));
        assert_eq!(Journal::read(&path).unwrap().unwrap().order, [2, 0]);
    }
}
