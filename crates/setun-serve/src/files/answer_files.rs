//! The files that the answers of a batch are appended to.

use std::{
    collections::HashSet,
    fs::{File, OpenOptions},
    io::{self, BufRead, BufReader, Seek, SeekFrom, Write},
    path::{Path, PathBuf},
};

use serde::Deserialize;
use setun::batch_file::{BatchOutcome, answer_line, id_of};

use super::{
    records::{Purpose, RequestCounts, StoredBatch, StoredFile},
    service::Owner,
    store::FileStore,
};
use crate::error::ApiError;

/// Answers, and those that are errors.
pub(crate) struct AnswerFiles {
    store: FileStore,
    owner: Owner,
    batch: String,
    answers: AnswerFile,
    errors: AnswerFile,
    counts: RequestCounts,
    /// Ids of the requests that are answered.
    done: HashSet<String>,
}

/// One of the files. There is none before its first line.
struct AnswerFile {
    id: String,
    path: PathBuf,
    file: Option<File>,
    bytes: u64,
}

/// The part of a line that tells whose answer it is.
#[derive(Deserialize)]
struct Head {
    custom_id: String,
}

impl AnswerFiles {
    /// Reads what is there of a batch. A line that is not whole, which a process has left that ended while it
    /// wrote, is cut off.
    pub(crate) fn open(store: &FileStore, batch: &StoredBatch, owner: Owner) -> io::Result<Self> {
        let mut done = HashSet::new();
        let mut open = |id: &str| {
            let before = done.len();
            let file = AnswerFile::open(id, store.content(id), &mut done)?;
            Ok::<_, io::Error>((file, done.len() - before))
        };
        let (answers, completed) = open(&batch.answers_id)?;
        let (errors, failed) = open(&batch.errors_id)?;
        let counts = RequestCounts { completed, failed, ..batch.counts };
        let (store, batch) = (store.clone(), batch.id.clone());
        store.count(&batch, counts);
        Ok(Self { store, owner, batch, answers, errors, counts, done })
    }

    /// Ids of the requests that were answered before.
    pub(crate) fn done(&self) -> HashSet<String> {
        self.done.clone()
    }

    /// Adds the answer of a request: a line that is whole, or none.
    pub(crate) fn append(
        &mut self,
        custom_id: &str,
        outcome: BatchOutcome<'_>,
    ) -> Result<(), ApiError> {
        let is_success =
            matches!(outcome, BatchOutcome::Answer { status, .. } if (200..300).contains(&status));
        let line = answer_line(custom_id, outcome);
        let bytes = line.len() as u64;
        self.store.take_bytes(&self.owner.id, bytes, self.owner.is_one_of_several)?;
        let file = if is_success { &mut self.answers } else { &mut self.errors };
        if let Err(error) = file.append(&line) {
            self.store.give_back(&self.owner.id, bytes, 0);
            return Err(ApiError::of_storage(&error));
        }
        if is_success {
            self.counts.completed += 1;
        } else {
            self.counts.failed += 1;
        }
        self.done.insert(id_of(custom_id));
        self.store.count(&self.batch, self.counts);
        Ok(())
    }

    /// Makes the files that have lines those of the owner. Their ids: of answers and of errors.
    pub(crate) fn publish(
        &mut self,
        expires_at: Option<u64>,
        now: u64,
    ) -> Result<[Option<String>; 2], ApiError> {
        let failed = |error: io::Error| ApiError::of_storage(&error);
        let mut ids = [None, None];
        let files = [(&self.answers, "output"), (&self.errors, "error")];
        for (place, (file, name)) in files.into_iter().enumerate() {
            let Some(content) = &file.file else { continue };
            content.sync_all().map_err(failed)?;
            let known = self.store.file(&self.owner.id, &file.id, 0);
            if known.is_none() {
                self.store
                    .add_file(StoredFile {
                        id: file.id.clone(),
                        owner: self.owner.id.clone(),
                        number: 0,
                        bytes: file.bytes,
                        created_at: now,
                        filename: format!("{}_{name}.jsonl", self.batch),
                        purpose: Purpose::BatchOutput,
                        expires_at,
                    })
                    .map_err(failed)?;
                self.store.count_file(&self.owner.id);
            }
            ids[place] = Some(file.id.clone());
        }
        Ok(ids)
    }

    pub(crate) fn counts(&self) -> RequestCounts {
        self.counts
    }
}

impl AnswerFile {
    fn open(id: &str, path: PathBuf, done: &mut HashSet<String>) -> io::Result<Self> {
        let file = match OpenOptions::new().read(true).write(true).open(&path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Ok(Self { id: id.to_owned(), path, file: None, bytes: 0 });
            }
            Err(error) => return Err(error),
        };
        let bytes = whole_lines(&path, done)?;
        file.set_len(bytes)?;
        Ok(Self { id: id.to_owned(), path, file: Some(file), bytes })
    }

    fn append(&mut self, line: &[u8]) -> io::Result<()> {
        let file = if let Some(file) = &mut self.file {
            file
        } else {
            let file = OpenOptions::new().write(true).create_new(true).open(&self.path)?;
            self.file.insert(file)
        };
        file.seek(SeekFrom::Start(self.bytes))?;
        if let Err(error) = file.write_all(line) {
            let _ = file.set_len(self.bytes); // a part of a line is cut off by the next start, too
            return Err(error);
        }
        self.bytes += line.len() as u64;
        Ok(())
    }
}

/// Bytes of the lines that are whole, from the beginning of a file. Adds the ids of their requests.
fn whole_lines(path: &Path, done: &mut HashSet<String>) -> io::Result<u64> {
    let (mut reader, mut bytes, mut line) = (BufReader::new(File::open(path)?), 0, vec![]);
    loop {
        line.clear();
        let length = reader.read_until(b'\n', &mut line)?;
        let head =
            if line.ends_with(b"\n") { serde_json::from_slice::<Head>(&line).ok() } else { None };
        let Some(head) = head else { return Ok(bytes) };
        bytes += length as u64;
        done.insert(id_of(&head.custom_id));
    }
}

#[cfg(test)]
mod tests {
    use std::{env, fs, process};

    use super::*;

    #[test]
    fn a_line_that_is_not_whole_is_cut_off() {
        let path = env::temp_dir().join(format!("setun-answers-{}", process::id()));
        let line = |key| answer_line(key, BatchOutcome::Answer { status: 200, body: "{}" });
        let whole = [line("a"), line("b")].concat();
        for end in [&b""[..], b"{\"id\"", b"\0\0\0\0\n", &line("c")[..9]] {
            fs::write(&path, [&whole, end].concat()).expect("it is written");
            let mut done = HashSet::new();
            let mut file = AnswerFile::open("file-a", path.clone(), &mut done).expect("it is read");
            assert_eq!(done, HashSet::from([id_of("a"), id_of("b")]));
            file.append(&line("d")).expect("it is written");
            assert_eq!(fs::read(&path).expect("it is read"), [&whole[..], &line("d")].concat());
        }
        fs::remove_file(&path).expect("it is removed");
    }
}
