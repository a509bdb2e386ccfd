//! Start or resumption of a file's download, from its journal.

use std::{
    fs::{self, File},
    sync::{Mutex, atomic::AtomicBool},
};

use super::transfer::{Download, Downloads, Paths, Server, State};
use crate::{
    atomic_files::{open_or_make, open_regular},
    digest::Digest,
    error::Error,
    file_check::FileDigests,
    http::network,
    journal::{Journal, JournalHeader},
    manifest::FileEntry,
    options::{PullEvent, PullOptions},
    probe::{Probe, probe},
    pull_plan::{PlannedFile, PullResult},
    retry::Fault,
};

impl Downloads<'_> {
    /// Compares what the server has with what has arrived.
    pub(crate) fn begin<'a>(
        &'a self,
        wanted: &'a PlannedFile,
        paths: &'a Paths,
    ) -> PullResult<Download<'a>> {
        let file = || wanted.name.clone();
        let on_retry =
            |reason, wait| (self.listener)(PullEvent::Retry { file: file(), reason, wait });
        (self.listener)(PullEvent::Connecting { address: wanted.address.clone() });
        let found = probe(self.http, &wanted.address, self.options, &on_retry)?;
        let found = found.ok_or_else(|| Error::HttpStatus {
            address: wanted.address.clone(),
            status: 404,
            hint: ": there is no such file",
        })?;
        let bytes = size(wanted, &found)?;
        let chunk_bytes = self.chunk_bytes(wanted);
        let subject = JournalHeader::new(bytes, chunk_bytes, found.identity.clone(), wanted.sha256);
        let journal = self.journal(wanted, paths, subject)?;
        let there = journal.bytes();
        (self.listener)(PullEvent::FileStarted { file: file(), bytes, present: there });
        Ok(Download {
            all: self,
            wanted,
            paths,
            subject: journal.subject.clone(),
            server: Mutex::new(Some(Server { address: found.address, etag: found.etag })),
            state: Mutex::new(State { journal, next: 0 }),
            stop: AtomicBool::new(false),
            unsure: !found.ranges,
        })
    }

    /// Bytes of a file's chunks, which its source may define.
    pub(crate) fn chunk_bytes(&self, wanted: &PlannedFile) -> u64 {
        wanted.chunks.as_ref().map_or_else(|| self.options.own_chunk_bytes(), |chunks| chunks.0)
    }

    /// The journal of an earlier pull of the same file, without chunks that are damaged; or a
    /// new one.
    fn journal(
        &self,
        wanted: &PlannedFile,
        paths: &Paths,
        mut subject: JournalHeader,
    ) -> PullResult<Journal> {
        let found = Journal::read(&paths.journal)?.filter(|_| paths.part.is_file());
        if let Some(found) = found {
            if wanted.chunks.is_none() {
                subject.chunk_bytes = found.subject.chunk_bytes;
            }
            if found.subject == subject {
                return Ok(self.checked(wanted, paths, found)?);
            }
            let reason = format!(
                "{} bytes known as {}, before {} bytes known as {}",
                subject.bytes,
                subject.identity.as_deref().unwrap_or("nothing"),
                found.subject.bytes,
                found.subject.identity.as_deref().unwrap_or("nothing"),
            );
            subject.chunk_bytes = self.chunk_bytes(wanted);
            self.changed(wanted, paths, &reason)?;
        }
        paths.clear()?;
        open_or_make(&paths.part)?;
        Ok(Journal::begin(paths.journal.clone(), subject)?)
    }

    /// Reads again the chunks that came last: should the disk have lost any, it is these.
    fn checked(
        &self,
        wanted: &PlannedFile,
        paths: &Paths,
        journal: Journal,
    ) -> Result<Journal, Error> {
        let failed = |error| Error::io("read", &paths.part, 0, error);
        let mut part = File::open(&paths.part).map_err(failed)?;
        let mut bad = vec![];
        for &chunk in journal.order.iter().rev().take(2 * self.options.workers()) {
            let found =
                Digest::of_range(&mut part, journal.subject.range(chunk)).map_err(failed)?;
            if journal.chunks.get(&chunk) != Some(&found) {
                bad.push(chunk);
            }
        }
        if bad.is_empty() {
            return Ok(journal);
        }
        (self.listener)(PullEvent::Corrupt { file: wanted.name.clone(), chunks: bad.clone() });
        journal.forget(&bad)
    }
}

/// The size of a file, on which all sources agree.
fn size(wanted: &PlannedFile, found: &Probe) -> PullResult<u64> {
    if wanted.identity.is_some() && wanted.identity != found.identity {
        let name = |identity: &Option<String>| identity.clone().unwrap_or_else(|| "nothing".into());
        let (before, now) = (name(&wanted.identity), name(&found.identity));
        return Err(Fault::Changed(format!("known as {now}, before as {before}")));
    }
    match (wanted.bytes, found.bytes) {
        (Some(listed), Some(found)) if listed != found => Err(Error::SizeMismatch {
            address: wanted.address.clone(),
            expected: listed,
            found: found.to_string(),
        }
        .into()),
        (listed, found) => {
            let none = || network(&wanted.address, "the server does not state its size".into());
            Ok(listed.or(found).ok_or_else(none)?)
        }
    }
}

/// A file that is there without a journal: of a model whose manifest is damaged. It is the one that
/// is wanted where the source reports its hash and it has that.
pub(crate) fn adopted(
    wanted: &PlannedFile,
    paths: &Paths,
    chunk_bytes: u64,
    options: &PullOptions,
) -> Result<Option<FileEntry>, Error> {
    let (Some(bytes), Some(sha256)) = (wanted.bytes, wanted.sha256) else { return Ok(None) };
    let Ok(mut file) = open_regular(&paths.path) else { return Ok(None) };
    let failed = |error| Error::io("read", &paths.path, 0, error);
    let subject = JournalHeader::new(bytes, chunk_bytes, wanted.identity.clone(), Some(sha256));
    if file.metadata().map_err(failed)?.len() != bytes {
        return Ok(None);
    }
    let FileDigests { whole, chunks } =
        FileDigests::read(&mut file, &paths.path, &subject, options)?;
    if whole != sha256 {
        return Ok(None);
    }
    let (name, etag) = (wanted.name.clone(), wanted.identity.clone());
    Ok(Some(FileEntry { name, bytes, etag, sha256: Some(sha256), chunk_bytes, chunks }))
}

/// A file that an earlier pull has finished.
pub(crate) fn completed(wanted: &PlannedFile, paths: &Paths) -> Result<Option<FileEntry>, Error> {
    let Ok(metadata) = fs::metadata(&paths.path) else { return Ok(None) };
    let Some(journal) = Journal::read(&paths.journal)? else { return Ok(None) };
    let subject = &journal.subject;
    let same = metadata.len() == subject.bytes
        && wanted.bytes.is_none_or(|bytes| bytes == subject.bytes)
        && wanted.sha256 == subject.sha256
        && (wanted.identity.is_none() || wanted.identity == subject.identity);
    Ok(journal.whole.filter(|_| same && journal.missing(0).is_none()).map(|whole| FileEntry {
        name: wanted.name.clone(),
        bytes: subject.bytes,
        etag: subject.identity.clone(),
        sha256: Some(whole),
        chunk_bytes: subject.chunk_bytes,
        chunks: journal.chunks.values().copied().collect(),
    }))
}
