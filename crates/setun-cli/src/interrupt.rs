//! SIGINT (Ctrl-C) and SIGTERM: end the generations under way, or else the process.

use std::{
    fs,
    io::{self, IsTerminal},
    path::{Path, PathBuf},
    process,
    sync::{Mutex, MutexGuard, PoisonError},
};

use setun::CancelHandle;

use crate::{error::INTERRUPTED, output::report};

/// What a signal ends. It takes the handles, so that a second one ends the process.
static CURRENT: Mutex<Vec<CancelHandle>> = Mutex::new(vec![]);

/// Files and folders that are removed if the process is ended, in the order in which they were
/// made.
static UNFINISHED: Mutex<Vec<PathBuf>> = Mutex::new(vec![]);

/// From now on the signals do what this module says.
pub(crate) fn install() {
    if hangup_is_ignored() {
        return; // the handler would end what `nohup` protects
    }
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

/// The handler is for SIGHUP as well, which `nohup` has the process ignore.
fn hangup_is_ignored() -> bool {
    const HANGUP: u64 = 1; // bit of signal 1
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    mask.is_some_and(|mask| mask & HANGUP != 0)
}

fn replace(handles: Vec<CancelHandle>) -> Vec<CancelHandle> {
    std::mem::replace(&mut *CURRENT.lock().unwrap_or_else(PoisonError::into_inner), handles)
}
