//! Verification of a downloaded file, and its final name.

use std::fs::File;

use super::transfer::Download;
use crate::{
    atomic_files::{remove_any, replace, sync_folder},
    digest::Digest,
    error::Error,
    file_check::FileDigests,
    journal::Journal,
    manifest::FileEntry,
    options::PullEvent,
    pull_plan::PullResult,
};

impl Download<'_> {
    /// Checks the file and gives it its name. `None` where chunks have to come once more.
    ///
    /// Every byte is read again: the hash that a hub reports is of the whole file, and the disk
    /// may have lost what an earlier pull wrote.
    pub(crate) fn finish(
        &self,
        doubted: &mut Option<Vec<Digest>>,
        last: bool,
    ) -> PullResult<Option<FileEntry>> {
        (self.all.listener)(PullEvent::Verifying { file: self.name() });
        let found = self.read()?;
        let lost: Vec<u64> = {
            let state = self.state();
            let lost = state.journal.chunks.iter().filter(|(chunk, digest)| {
                let at = usize::try_from(**chunk).unwrap_or(usize::MAX);
                found.chunks.get(at) != Some(digest)
            });
            lost.map(|(chunk, _)| *chunk).collect()
        };
        if !lost.is_empty() {
            if last {
                return Err(Error::DiskCorruption { path: self.paths.part.clone() }.into());
            }
            self.again(&lost)?;
            return Ok(None);
        }
        if let Some(expected) = self.wanted.sha256.filter(|expected| *expected != found.whole) {
            self.doubt(doubted, &found, expected)?;
            return Ok(None);
        }
        self.publish(found).map(Some)
    }

    /// Hashes of what is on the disk.
    fn read(&self) -> Result<FileDigests, Error> {
        let path = &self.paths.part;
        let mut file = File::open(path).map_err(|error| Error::io("read", path, 0, error))?;
        FileDigests::read(&mut file, path, &self.subject, self.all.options)
    }

    /// Chunks that the disk has lost are asked for once more.
    fn again(&self, lost: &[u64]) -> PullResult<()> {
        let sizes = lost.iter().map(|chunk| self.subject.range(*chunk));
        self.dropped(sizes.map(|range| range.end - range.start).sum());
        (self.all.listener)(PullEvent::Corrupt { file: self.name(), chunks: lost.to_vec() });
        let mut state = self.state();
        let journal = Journal::read(&self.paths.journal)?;
        if let Some(journal) = journal {
            state.journal = journal.forget(lost)?;
        }
        Ok(())
    }

    /// The whole is not what it should be, and which chunk is wrong is not known: all is asked
    /// for once more, and then nothing of it is kept.
    fn doubt(
        &self,
        doubted: &mut Option<Vec<Digest>>,
        found: &FileDigests,
        expected: Digest,
    ) -> PullResult<()> {
        let Some(first) = doubted.take() else {
            *doubted = Some(found.chunks.clone());
            self.dropped(self.subject.bytes);
            (self.all.listener)(PullEvent::Corrupt { file: self.name(), chunks: vec![] });
            self.state().journal =
                Journal::begin(self.paths.journal.clone(), self.subject.clone())?;
            return Ok(());
        };
        self.paths.clear()?;
        let pairs = first.iter().zip(&found.chunks).zip(0..);
        Err(Error::ChecksumMismatch {
            address: self.wanted.address.clone(),
            chunks: pairs
                .filter(|((first, second), _)| first != second)
                .map(|(_, at)| at)
                .collect(),
            expected: expected.hex(),
            found: found.whole.hex(),
        }
        .into())
    }

    /// Gives the file its name, once it is on the disk as it is.
    fn publish(&self, found: FileDigests) -> PullResult<FileEntry> {
        let FileDigests { whole, chunks } = found;
        let (part, path) = (&self.paths.part, &self.paths.path);
        let file = File::options().write(true).open(part);
        let synced = file.and_then(|file| {
            // A file that was longer before keeps no tail.
            file.set_len(self.subject.bytes)?;
            file.sync_all()
        });
        synced.map_err(|error| self.cannot_write(error))?;
        self.state().journal.finish(whole)?;
        if path.is_dir() {
            remove_any(path)?;
        }
        replace(part, path)?;
        if let Some(folder) = path.parent() {
            sync_folder(folder)?;
        }
        (self.all.listener)(PullEvent::FileFinished { file: self.name() });
        Ok(FileEntry {
            name: self.name(),
            bytes: self.subject.bytes,
            etag: self.subject.identity.clone(),
            sha256: Some(whole),
            chunk_bytes: self.subject.chunk_bytes,
            chunks,
        })
    }
}
