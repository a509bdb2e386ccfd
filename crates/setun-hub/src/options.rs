//! Options and progress events of a pull.

use std::{
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use crate::error::Error;

/// Options of a pull.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct PullOptions {
    /// Connections at once. Default: 4.
    pub connections: usize,
    /// Bytes that are asked for, checked and kept together. Default: 8 MiB. Where a server tells
    /// hashes of chunks, its chunks are taken.
    pub chunk_bytes: u64,
    /// Times that something is tried without any byte of it coming. Default: 6.
    pub attempts: u32,
    /// The wait before the second attempt; it doubles with each. Default: half a second.
    pub backoff: Duration,
    /// The longest wait that a server may ask for. Default: five minutes.
    pub max_wait: Duration,
    /// The longest time without a byte on a connection. Default: 30 s.
    pub read_timeout: Duration,
    /// Ends the pull once it is true, within the time of a wait or a read.
    pub cancel: Arc<AtomicBool>,
}

impl Default for PullOptions {
    fn default() -> Self {
        Self {
            connections: 4,
            chunk_bytes: 8 << 20,
            attempts: 6,
            backoff: Duration::from_millis(500),
            max_wait: Duration::from_mins(5),
            read_timeout: Duration::from_secs(30),
            cancel: Arc::default(),
        }
    }
}

impl PullOptions {
    /// The defaults.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets [`connections`](Self::connections), 1 to 64.
    #[must_use]
    pub fn connections(mut self, connections: usize) -> Self {
        self.connections = connections.clamp(1, 64);
        self
    }

    /// Sets [`chunk_bytes`](Self::chunk_bytes), 4 KiB to 1 GiB.
    #[must_use]
    pub fn chunk_bytes(mut self, bytes: u64) -> Self {
        self.chunk_bytes = bytes.clamp(4 << 10, 1 << 30);
        self
    }

    /// Sets [`attempts`](Self::attempts), 1 or more.
    #[must_use]
    pub fn attempts(mut self, attempts: u32) -> Self {
        self.attempts = attempts.max(1);
        self
    }

    /// Sets [`backoff`](Self::backoff).
    #[must_use]
    pub fn backoff(mut self, backoff: Duration) -> Self {
        self.backoff = backoff;
        self
    }

    /// Sets [`max_wait`](Self::max_wait).
    #[must_use]
    pub fn max_wait(mut self, wait: Duration) -> Self {
        self.max_wait = wait;
        self
    }

    /// Sets [`read_timeout`](Self::read_timeout).
    #[must_use]
    pub fn read_timeout(mut self, read_timeout: Duration) -> Self {
        self.read_timeout = read_timeout;
        self
    }

    /// Sets [`cancel`](Self::cancel).
    #[must_use]
    pub fn cancel(mut self, cancel: Arc<AtomicBool>) -> Self {
        self.cancel = cancel;
        self
    }

    pub(crate) fn check_cancelled(&self) -> Result<(), Error> {
        if self.cancel.load(Ordering::Relaxed) { Err(Error::Cancelled) } else { Ok(()) }
    }
}

/// Progress of a pull. Numbers are of bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum PullEvent {
    /// What is to be pulled is known.
    Planned {
        /// The model.
        model: String,
        /// Its revision.
        revision: String,
        /// Number of its files.
        files: usize,
        /// Bytes of all files, as far as they were told.
        bytes: u64,
    },
    /// Another process pulls or removes the same model.
    WaitingForLock {
        /// Its lock.
        lock: PathBuf,
    },
    /// It was there already, or another process has pulled it.
    AlreadyStored {
        /// The model.
        model: String,
        /// Its revision.
        revision: String,
    },
    /// A file begins, or goes on.
    FileStarted {
        /// Its name.
        file: String,
        /// Its size.
        bytes: u64,
        /// Bytes that are there already.
        present: u64,
    },
    /// Some bytes of a file have come.
    Received {
        /// Its name.
        file: String,
        /// How many.
        bytes: u64,
    },
    /// Bytes that had come are to come once more.
    Discarded {
        /// The file's name.
        file: String,
        /// How many.
        bytes: u64,
    },
    /// Something failed and is tried again.
    Retry {
        /// The file's name, or the address of a list.
        file: String,
        /// What was wrong.
        reason: String,
        /// How long it waits before.
        wait: Duration,
    },
    /// The server has another file now: it begins anew.
    SourceChanged {
        /// Its name.
        file: String,
        /// What differs.
        reason: String,
    },
    /// The server gives no parts of a file, so that it comes from its beginning.
    RangesUnsupported {
        /// Its name.
        file: String,
    },
    /// Wrong bytes have come, or are on the disk; they are asked for once more.
    Corrupt {
        /// The file's name.
        file: String,
        /// The chunks, where they are known.
        chunks: Vec<u64>,
    },
    /// A file is there and is checked.
    Verifying {
        /// Its name.
        file: String,
    },
    /// A file is done.
    FileFinished {
        /// Its name.
        file: String,
    },
}

/// Callback that receives the progress of a pull, from several threads.
pub type ProgressListener<'a> = &'a (dyn Fn(PullEvent) + Sync);
