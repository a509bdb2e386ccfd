//! File lock: one process at a time changes a model.
//!
//! A lock is held by an open file, so the system ends it with its process, however that ends.
//! The files stay: to remove one would let two processes hold locks of the same name.

use std::{
    fs::{File, TryLockError},
    path::Path,
    time::Duration,
};

use crate::{
    atomic_files::open_or_make,
    error::Error,
    options::{ProgressListener, PullEvent, PullOptions},
    retry::pause,
};

/// How often a lock that another holds is looked at.
const LOOK: Duration = Duration::from_millis(100);

/// Held until it is dropped.
#[derive(Debug)]
pub(crate) struct Lock {
    _file: File,
}

impl Lock {
    /// Waits until no other process holds it, and reports the wait to the listener.
    pub(crate) fn take(
        path: &Path,
        options: &PullOptions,
        listener: ProgressListener<'_>,
    ) -> Result<Self, Error> {
        let file = open_or_make(path)?;
        let mut reported = false;
        loop {
            match file.try_lock() {
                Ok(()) => return Ok(Self { _file: file }),
                Err(TryLockError::WouldBlock) => {
                    if !reported {
                        listener(PullEvent::WaitingForLock { lock: path.to_owned() });
                        reported = true;
                    }
                    pause(LOOK, options)?;
                }
                Err(TryLockError::Error(source)) => {
                    return Err(Error::Io { operation: "lock", path: path.to_owned(), source });
                }
            }
        }
    }
}
