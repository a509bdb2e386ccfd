//! SIGINT (Ctrl-C), SIGTERM and SIGHUP: end the generations under way, or else the process.

use std::{
    fs,
    io::{self, IsTerminal},
    path::{Path, PathBuf},
    process,
    sync::{
        Mutex, MutexGuard, PoisonError,
        atomic::{AtomicI32, Ordering},
    },
};

use setun::CancelHandle;

#[cfg(unix)]
use crate::unix_signals;
use crate::{error::CliError, log_writer, output::report};

/// Number of SIGINT.
const SIGINT: i32 = 2;

/// The last signal that ended something.
static SIGNAL: AtomicI32 = AtomicI32::new(SIGINT);

/// What a signal ends. It takes the actions, so that a second one ends the process.
static CURRENT: Mutex<Vec<Action>> = Mutex::new(vec![]);

/// What SIGHUP does in place of an end.
static HANGUP: Mutex<Option<Box<dyn FnMut() + Send>>> = Mutex::new(None);

/// Number of SIGHUP.
const SIGHUP: i32 = 1;

/// Ends something.
type Action = Box<dyn FnOnce() + Send>;

/// Files and folders that are removed if the process is ended, in the order in which they were
/// made.
static UNFINISHED: Mutex<Vec<PathBuf>> = Mutex::new(vec![]);

/// From now on the signals do what this module says.
pub(crate) fn install() {
    // Where the system refuses, a signal ends the process as it always does.
    #[cfg(unix)]
    {
        let _ = unix_signals::on_end(end);
        unix_signals::ignore_file_size();
    }
    #[cfg(not(unix))]
    let _ = ctrlc::set_handler(|| end(SIGINT));
}

/// From now on SIGHUP does this, and ends nothing, also where `nohup` has the process ignore it.
#[cfg(feature = "serve")]
pub(crate) fn on_hangup(action: impl FnMut() + Send + 'static) {
    *HANGUP.lock().unwrap_or_else(PoisonError::into_inner) = Some(Box::new(action));
    #[cfg(unix)]
    {
        let _ = unix_signals::take_hangup(); // where the system refuses, it is not taken
    }
}

/// The end of a command after a signal.
#[must_use]
pub fn interrupted() -> CliError {
    CliError::Interrupted { status: status() }
}

/// Exit status after a signal, as shells have it.
fn status() -> u8 {
    u8::try_from(128 + SIGNAL.load(Ordering::Relaxed)).unwrap_or(u8::MAX)
}

/// Whether a signal has asked for the end of the process, not of a text alone.
#[must_use]
pub fn is_terminated() -> bool {
    SIGNAL.load(Ordering::Relaxed) != SIGINT
}

/// Ends what is under way after a signal.
fn end(signal: i32) {
    if signal == SIGHUP
        && let Some(action) = &mut *HANGUP.lock().unwrap_or_else(PoisonError::into_inner)
    {
        return action();
    }
    if signal != SIGINT {
        SIGNAL.store(signal, Ordering::Relaxed); // an interrupt that comes after it is not the end
    }
    let actions = replace(vec![]);
    if !actions.is_empty() {
        return actions.into_iter().for_each(|action| action());
    }
    if io::stderr().is_terminal() {
        report("\n");
    }
    // Held to the end: nothing else is made or gets its name.
    let unfinished = unfinished();
    unfinished.iter().rev().for_each(|path| remove(path));
    log_writer::flush();
    process::exit(i32::from(status()));
}

/// The signals end these generations, until the guard is dropped.
pub(crate) fn cancels(handles: Vec<CancelHandle>) -> Guard {
    let action = |handle: CancelHandle| -> Action { Box::new(move || handle.cancel()) };
    replace(handles.into_iter().map(action).collect());
    Guard
}

/// The first signal does this, until the guard is dropped.
pub fn on_signal(action: impl FnOnce() + Send + 'static) -> Guard {
    replace(vec![Box::new(action)]);
    Guard
}

/// A handler of signals, which is removed with the value.
#[derive(Debug)]
#[must_use]
pub struct Guard;

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

fn replace(actions: Vec<Action>) -> Vec<Action> {
    std::mem::replace(&mut *CURRENT.lock().unwrap_or_else(PoisonError::into_inner), actions)
}
