//! Options and progress events of a pull.

use std::{
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use setun_clock::Clock;

use crate::{error::Error, manifest::CHUNK_BYTES};

/// Options of a pull.
#[derive(Clone, Debug)]
pub struct PullOptions {
    /// Connections at once, 1 to 64. Default: 4.
    pub connections: usize,
    /// Bytes that are requested, verified and stored together, 4 KiB to 1 GiB. Default: 8 MiB.
    /// Where a server reports hashes of chunks, its chunks are taken.
    pub chunk_bytes: u64,
    /// Attempts without any byte received, 1 or more. Default: 6.
    pub attempts: u32,
    /// The wait before the second attempt; it doubles with each. Default: half a second.
    pub backoff: Duration,
    /// The longest wait that a server may ask for. Default: five minutes.
    pub max_wait: Duration,
    /// The longest time without a byte on a connection. Default: 30 s.
    pub read_timeout: Duration,
    /// Least bytes a second on a connection, over the time of [`read_timeout`](Self::read_timeout);
    /// a slower connection counts as broken. 0 allows any. Default: 100.
    pub min_speed: u64,
    /// The moment at which the pull ends, done or not. What has arrived is kept. Default: none.
    pub deadline: Option<Instant>,
    /// The clock of the deadline, of waits and of speeds; only tests have another than the
    /// system's. Times without a byte are those of the system.
    pub clock: Clock,
    /// Whether a pull reads the files that are stored already and compares them with their hashes,
    /// so that it repairs bytes that are wrong. Otherwise their sizes are compared, which costs
    /// nothing. Default: false.
    pub verify_stored: bool,
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
            min_speed: 100,
            deadline: None,
            clock: Clock::system(),
            verify_stored: false,
            cancel: Arc::default(),
        }
    }
}

impl PullOptions {
    /// [`connections`](Self::connections), within their range.
    pub(crate) fn workers(&self) -> usize {
        self.connections.clamp(1, 64)
    }

    /// [`chunk_bytes`](Self::chunk_bytes), within their range.
    pub(crate) fn own_chunk_bytes(&self) -> u64 {
        self.chunk_bytes.clamp(*CHUNK_BYTES.start(), *CHUNK_BYTES.end())
    }

    pub(crate) fn check_cancelled(&self) -> Result<(), Error> {
        self.time_left().map(drop)
    }

    /// The time until the [`deadline`](Self::deadline), if there is one.
    pub(crate) fn time_left(&self) -> Result<Option<Duration>, Error> {
        if self.cancel.load(Ordering::Relaxed) {
            return Err(Error::Cancelled);
        }
        let left =
            self.deadline.map(|deadline| deadline.saturating_duration_since(self.clock.now()));
        if left.is_some_and(|left| left.is_zero()) {
            return Err(Error::DeadlineExceeded);
        }
        Ok(left)
    }
}

/// Progress of a pull. Numbers are of bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum PullEvent {
    /// A server is asked what there is, or for a file.
    Connecting {
        /// The address.
        address: String,
    },
    /// What is to be pulled is known.
    Planned {
        /// The model.
        model: String,
        /// Its revision.
        revision: String,
        /// Number of its files.
        files: usize,
        /// Bytes of all files whose sizes are known.
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
    /// The download of a file begins or resumes.
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
