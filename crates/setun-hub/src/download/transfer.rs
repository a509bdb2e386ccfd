//! State of a file's download, shared by its connections.

use std::{
    path::{Path, PathBuf},
    sync::{Mutex, MutexGuard, PoisonError, atomic::AtomicBool},
};

use crate::{
    atomic_files::with_end,
    digest::Digest,
    error::Error,
    http::Http,
    journal::{Journal, JournalHeader, discard},
    options::{ProgressListener, PullEvent, PullOptions},
    pull_plan::PlannedFile,
    retry::Fault,
};

/// What all downloads of a pull share.
pub(crate) struct Downloads<'a> {
    pub(crate) http: &'a Http,
    pub(crate) options: &'a PullOptions,
    pub(crate) listener: ProgressListener<'a>,
}

/// Where a file is, and what is beside it while it comes.
pub(crate) struct Paths {
    pub(crate) path: PathBuf,
    pub(crate) part: PathBuf,
    pub(crate) journal: PathBuf,
}

impl Paths {
    pub(crate) fn new(folder: &Path, name: &str) -> Self {
        let path = folder.join(name);
        Self { part: with_end(&path, ".part"), journal: with_end(&path, ".chunks"), path }
    }

    /// Removes what is beside the file.
    pub(crate) fn clear(&self) -> Result<(), Error> {
        discard(&self.part, &self.journal)
    }
}

/// A file on its way.
pub(crate) struct Download<'a> {
    pub(crate) all: &'a Downloads<'a>,
    pub(crate) wanted: &'a PlannedFile,
    pub(crate) paths: &'a Paths,
    pub(crate) subject: JournalHeader,
    /// Who has the bytes; forgotten where that one refuses, so that the first is asked again.
    pub(crate) server: Mutex<Option<Server>>,
    pub(crate) state: Mutex<State>,
    pub(crate) stop: AtomicBool,
    /// Whether parts are given is not known yet.
    pub(crate) unsure: bool,
}

/// Who has the bytes.
#[derive(Clone)]
pub(crate) struct Server {
    pub(crate) address: String,
    pub(crate) etag: Option<String>,
}

pub(crate) struct State {
    pub(crate) journal: Journal,
    /// Chunks before it are there, or on their way.
    pub(crate) next: u64,
}

/// Locks a mutex. A thread that panicked leaves no value half written here.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Download<'_> {
    pub(crate) fn state(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }

    pub(crate) fn retry(&self, reason: String, wait: std::time::Duration) {
        (self.all.listener)(PullEvent::Retry { file: self.name(), reason, wait });
    }

    pub(crate) fn dropped(&self, bytes: u64) {
        if bytes > 0 {
            (self.all.listener)(PullEvent::Discarded { file: self.name(), bytes });
        }
    }

    pub(crate) fn name(&self) -> String {
        self.wanted.name.clone()
    }

    /// The hash of a chunk, where the source reports one.
    pub(crate) fn expected_digest(&self, chunk: u64) -> Option<Digest> {
        let (_, digests) = self.wanted.chunks.as_ref()?;
        digests.get(usize::try_from(chunk).ok()?).copied()
    }

    /// A failure to write, with the bytes that are still to come.
    pub(crate) fn cannot_write(&self, error: std::io::Error) -> Fault {
        let left = self.subject.bytes.saturating_sub(self.state().journal.bytes());
        Error::io("write", &self.paths.part, left, error).into()
    }
}
