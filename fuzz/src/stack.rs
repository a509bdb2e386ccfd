//! A small stack whose overflow is a crash that leaves its input.
//!
//! A signal handler needs a stack. libFuzzer's have none of their own, so an overflow would end
//! the process without a word.

#![expect(unsafe_code, reason = "stacks are set by the system's C interface")]

use std::{
    mem::zeroed,
    ptr::{null, null_mut},
    sync::Once,
};

/// Bytes that libFuzzer's handler has.
const HANDLER_BYTES: usize = 1 << 18;

/// Runs `work` on this thread, the process's first, whose stack may have this many bytes from now on.
/// The system holds it to that where stacks grow, as on Linux.
pub(crate) fn on_small_stack<T>(bytes: usize, work: impl FnOnce() -> T) -> T {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        give_handlers_a_stack();
        use_it(libc::SIGSEGV);
        use_it(libc::SIGBUS);
        limit(bytes);
    });
    work()
}

fn give_handlers_a_stack() {
    let memory = vec![0_u8; HANDLER_BYTES].leak().as_mut_ptr().cast();
    let stack = libc::stack_t { ss_sp: memory, ss_flags: 0, ss_size: HANDLER_BYTES };
    // SAFETY: the memory is never freed, and nothing else has it.
    unsafe { libc::sigaltstack(&raw const stack, null_mut()) };
}

/// Has the handler of a signal run on the stack for handlers.
fn use_it(signal: libc::c_int) {
    // SAFETY: zero is a value of every field, and the calls read and write this one structure.
    unsafe {
        let mut action: libc::sigaction = zeroed();
        if libc::sigaction(signal, null(), &raw mut action) == 0 {
            action.sa_flags |= libc::SA_ONSTACK;
            libc::sigaction(signal, &raw const action, null_mut());
        }
    }
}

fn limit(bytes: usize) {
    // SAFETY: zero is a value of every field, and the calls read and write this one structure.
    unsafe {
        let mut limit: libc::rlimit = zeroed();
        if libc::getrlimit(libc::RLIMIT_STACK, &raw mut limit) == 0 {
            limit.rlim_cur = bytes as libc::rlim_t;
            libc::setrlimit(libc::RLIMIT_STACK, &raw const limit);
        }
    }
}
