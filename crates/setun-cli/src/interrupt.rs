//! Ctrl-C: ends the generations under way, or else the process.

use std::{
    io::{self, IsTerminal},
    process,
    sync::{Mutex, PoisonError},
};

use setun::CancelHandle;

use crate::{error::INTERRUPTED, output::report};

/// What Ctrl-C ends. It takes the handles, so that a second Ctrl-C ends the process.
static CURRENT: Mutex<Vec<CancelHandle>> = Mutex::new(vec![]);

/// From now on Ctrl-C does what this module says.
pub(crate) fn install() {
    // Where the system refuses, Ctrl-C ends the process as it always does.
    let _ = ctrlc::set_handler(|| {
        let handles = replace(vec![]);
        if !handles.is_empty() {
            return handles.iter().for_each(CancelHandle::cancel);
        }
        if io::stderr().is_terminal() {
            report("\n");
        }
        process::exit(i32::from(INTERRUPTED));
    });
}

/// Ctrl-C ends these generations, until the guard is dropped.
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

fn replace(handles: Vec<CancelHandle>) -> Vec<CancelHandle> {
    std::mem::replace(&mut *CURRENT.lock().unwrap_or_else(PoisonError::into_inner), handles)
}
