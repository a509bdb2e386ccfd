//! Signals: those that end a process, which a thread takes, and those that it ignores.

#![expect(unsafe_code, reason = "only libc reads and sets what a signal does")]

use std::{
    io::{self, Read},
    mem,
    os::fd::IntoRawFd,
    ptr,
    sync::atomic::{AtomicI32, Ordering},
    thread,
};

/// Signals that end a process.
const ENDING: [libc::c_int; 3] = [libc::SIGINT, libc::SIGTERM, libc::SIGHUP];

/// The descriptor to which the handler writes.
static WRITER: AtomicI32 = AtomicI32::new(-1);

/// Calls with the number of each SIGINT, SIGTERM and SIGHUP, on a thread of its own. A program that
/// this one starts is ended by them as ever.
///
/// A SIGHUP that the process ignores stays ignored: the handler would end what `nohup` protects.
pub(crate) fn on_end(mut end: impl FnMut(i32) + Send + 'static) -> io::Result<()> {
    let (mut reader, writer) = io::pipe()?;
    let take = move || {
        let mut signal = [0];
        while reader.read_exact(&mut signal).is_ok() {
            end(signal[0].into());
        }
    };
    thread::Builder::new().name("signals".to_owned()).spawn(take)?;
    WRITER.store(writer.into_raw_fd(), Ordering::Release); // open until the process ends
    let is_handled = |signal: &libc::c_int| *signal != libc::SIGHUP || !is_ignored(*signal);
    ENDING.into_iter().filter(is_handled).try_for_each(handle)
}

/// Has SIGHUP taken as the others are, also one that the process ignores: its action ends nothing.
#[cfg(feature = "serve")]
pub(crate) fn take_hangup() -> io::Result<()> {
    handle(libc::SIGHUP)
}

/// Has the process ignore SIGXFSZ: a file that may not grow is then an error of the write, after
/// which the parts are removed.
pub(crate) fn ignore_file_size() {
    // SAFETY: No function of this program is called by the signal.
    unsafe { libc::signal(libc::SIGXFSZ, libc::SIG_IGN) };
}

/// The handler: hands the signal to the thread.
extern "C" fn tell(signal: libc::c_int) {
    let [number, ..] = signal.to_le_bytes(); // all are small
    let writer = WRITER.load(Ordering::Acquire);
    // SAFETY: `write` may be called in a handler, and reads the one byte that it is given.
    unsafe { libc::write(writer, ptr::from_ref(&number).cast(), 1) };
}

/// Has the handler called by a signal.
fn handle(signal: libc::c_int) -> io::Result<()> {
    let mut action = no_action();
    action.sa_sigaction = tell as *const () as libc::sighandler_t;
    action.sa_flags = libc::SA_RESTART;
    // SAFETY: `action` lives until the call is over, and what it names may be called in a handler;
    // a null pointer asks for no old action.
    match unsafe { libc::sigaction(signal, &raw const action, ptr::null_mut()) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

fn is_ignored(signal: libc::c_int) -> bool {
    let mut action = no_action();
    // SAFETY: A null pointer changes nothing, and `action` lives until the call is over.
    let status = unsafe { libc::sigaction(signal, ptr::null(), &raw mut action) };
    status == 0 && action.sa_sigaction == libc::SIG_IGN
}

fn no_action() -> libc::sigaction {
    // SAFETY: All zeros are a `sigaction`: an integer, flags, and an empty set of signals.
    unsafe { mem::zeroed() }
}
