//! Signals that a process ignores: SIGHUP under `nohup`, and SIGXFSZ.

#![expect(unsafe_code, reason = "only libc reads and sets what a signal does")]

use std::{mem, ptr};

/// Whether the process ignores SIGHUP.
pub(crate) fn is_hangup_ignored() -> bool {
    // SAFETY: All zeros are a `sigaction`: an integer, flags, and a set of signals.
    let mut action: libc::sigaction = unsafe { mem::zeroed() };
    // SAFETY: A null pointer changes nothing, and `action` lives until the call is over.
    let status = unsafe { libc::sigaction(libc::SIGHUP, ptr::null(), &raw mut action) };
    status == 0 && action.sa_sigaction == libc::SIG_IGN
}

/// Has the process ignore SIGHUP.
pub(crate) fn ignore_hangup() {
    ignore(libc::SIGHUP);
}

/// Has the process ignore SIGXFSZ: a file that may not grow is then an error of the write, after
/// which the parts are removed.
pub(crate) fn ignore_file_size() {
    ignore(libc::SIGXFSZ);
}

fn ignore(signal: libc::c_int) {
    // SAFETY: No function of this program is called by the signal.
    unsafe { libc::signal(signal, libc::SIG_IGN) };
}
