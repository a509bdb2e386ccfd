//! SIGHUP, which `nohup` has a process ignore.

#![expect(unsafe_code, reason = "only libc reads and sets what a signal does")]

use std::{mem, ptr};

/// Whether the process ignores it.
pub(crate) fn is_ignored() -> bool {
    // SAFETY: All zeros are a `sigaction`: an integer, flags, and a set of signals.
    let mut action: libc::sigaction = unsafe { mem::zeroed() };
    // SAFETY: A null pointer changes nothing, and `action` lives until the call is over.
    let status = unsafe { libc::sigaction(libc::SIGHUP, ptr::null(), &raw mut action) };
    status == 0 && action.sa_sigaction == libc::SIG_IGN
}

/// Has the process ignore it.
pub(crate) fn ignore() {
    // SAFETY: No function of this program is called by the signal.
    unsafe { libc::signal(libc::SIGHUP, libc::SIG_IGN) };
}
