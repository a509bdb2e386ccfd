//! Ctrl-C: ends the generation under way, or else the process.

use std::{
    io::{self, IsTerminal},
    process,
    sync::{Mutex, PoisonError},
};

use setun::CancelHandle;

use crate::{error::INTERRUPTED, output::tell};

/// What Ctrl-C ends. It takes the handle, so that a second Ctrl-C ends the process.
static CURRENT: Mutex<Option<CancelHandle>> = Mutex::new(None);

/// From now on Ctrl-C does what this module says.
pub(crate) fn install() {
    // Where the system refuses, Ctrl-C ends the process as it always does.
    let _ = ctrlc::set_handler(|| {
        if let Some(handle) = replace(None) {
            return handle.cancel();
        }
        if io::stderr().is_terminal() {
            tell("\n");
        }
        process::exit(i32::from(INTERRUPTED));
    });
}

/// Ctrl-C ends this generation, until the guard is dropped.
pub(crate) fn cancels(handle: CancelHandle) -> Guard {
    replace(Some(handle));
    Guard
}

/// See [`cancels`].
pub(crate) struct Guard;

impl Drop for Guard {
    fn drop(&mut self) {
        replace(None);
    }
}

fn replace(handle: Option<CancelHandle>) -> Option<CancelHandle> {
    std::mem::replace(&mut *CURRENT.lock().unwrap_or_else(PoisonError::into_inner), handle)
}
