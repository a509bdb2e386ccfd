//! SIGINT (Ctrl-C) and SIGTERM: end the generations under way, or else the process.

use std::{
    fs,
    io::{self, IsTerminal},
    path::{Path, PathBuf},
    process,
    sync::{Mutex, MutexGuard, PoisonError},
};

use setun::CancelHandle;

#[cfg(unix)]
use crate::unix_signals;
use crate::{error::INTERRUPTED, output::report};

/// What a signal ends. It takes the handles, so that a second one ends the process.
static CURRENT: Mutex<Vec<CancelHandle>> = Mutex::new(vec![]);

/// Files and folders that are removed if the process is ended, in the order in which they were
/// made.
static UNFINISHED: Mutex<Vec<PathBuf>> = Mutex::new(vec![]);

/// From now on the signals do what this module says.
pub(crate) fn install() {
    #[cfg(unix)]
    let is_hangup_ignored = unix_signals::is_hangup_ignored();
    // Where the system refuses, a signal ends the process as it always does.
    let _ = ctrlc::set_handler(|| {
        let handles = replace(vec![]);
        if !handles.is_empty() {
            return handles.iter().for_each(CancelHandle::cancel);
        }
        if io::stderr().is_terminal() {
            report("\n");
        }
        // Held to the end: nothing else is made or gets its name.
        let unfinished = unfinished();
        unfinished.iter().rev().for_each(|path| remove(path));
        process::exit(i32::from(INTERRUPTED));
    });
    #[cfg(unix)]
    {
        unix_signals::ignore_file_size();
        if is_hangup_ignored {
            // The handler is for SIGHUP as well, and would end what `nohup` protects.
            unix_signals::ignore_hangup();
        }
    }
}

/// The signals end these generations, until the guard is dropped.
pub(crate) fn cancels(handles: Vec<CancelHandle>) -> Guard {
    replace(handles);
    Guard
}

/// See [`cancels`].
pub(crate) struct Guard;

impl Drop for Guard {
    fn drop(&mut self) {
        replace(vec![]);
    }
}

/// Paths that are removed if the process is ended; no signal ends it meanwhile.
pub(crate) fn unfinished() -> MutexGuard<'static, Vec<PathBuf>> {
    UNFINISHED.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Removes a file, or a folder that is empty.
pub(crate) fn remove(path: &Path) {
    // What cannot be removed is left for the next process with the same destination.
    let _ = fs::remove_file(path).or_else(|_| fs::remove_dir(path));
}

fn replace(handles: Vec<CancelHandle>) -> Vec<CancelHandle> {
    std::mem::replace(&mut *CURRENT.lock().unwrap_or_else(PoisonError::into_inner), handles)
}
