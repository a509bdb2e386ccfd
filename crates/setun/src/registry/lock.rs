//! One process at a time changes a model.
//!
//! A lock is held by an open file, so the system ends it with its process, however that ends.
//! The files stay: to remove one would let two processes hold locks of the same name.

use std::{
    fs::{File, TryLockError},
    path::Path,
    time::Duration,
};

use super::{
    error::RegistryError,
    files::open_or_make,
    options::{Listener, PullEvent, PullOptions},
    retry::sleep,
};

/// How often a lock that another holds is looked at.
const LOOK: Duration = Duration::from_millis(100);

/// Held until it is dropped.
#[derive(Debug)]
pub(super) struct Lock {
    _file: File,
}

impl Lock {
    /// Waits until nobody else holds it; the listener hears that it waits.
    pub(super) fn take(
        path: &Path,
        options: &PullOptions,
        listener: Listener<'_>,
    ) -> Result<Self, RegistryError> {
        let file = open_or_make(path)?;
        let mut told = false;
        loop {
            match file.try_lock() {
                Ok(()) => return Ok(Self { _file: file }),
                Err(TryLockError::WouldBlock) => {
                    if !told {
                        listener(PullEvent::Waiting { lock: path.to_owned() });
                        told = true;
                    }
                    sleep(LOOK, options)?;
                }
                Err(TryLockError::Error(source)) => {
                    return Err(RegistryError::Io { what: "lock", path: path.to_owned(), source });
                }
            }
        }
    }
}
