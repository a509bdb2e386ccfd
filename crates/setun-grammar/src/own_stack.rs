//! Work on a thread whose stack is known to suffice, wherever the caller runs.

use std::sync::mpsc::{RecvTimeoutError, sync_channel};
use std::sync::{Condvar, Mutex, PoisonError};
use std::thread::Builder;
use std::time::Duration;

use crate::{GrammarError, Interrupt};

/// Bytes of the stack. The deepest grammar takes some 4 MB of it without optimization; what is
/// not used takes no memory.
const STACK: usize = 64 << 20;

/// Time between two looks at the interrupt.
const PAUSE: Duration = Duration::from_millis(5);

/// Threads of compilations, those that nobody waits for any longer included.
static THREADS: Permits = Permits::new(8);

/// What `work` gives. After an interrupt the caller waits no longer; the work ends by itself at
/// its next look, or at its limits. Until then its thread is one of a bounded number.
pub(crate) fn on_own_stack<T: Send + 'static>(
    interrupt: &Interrupt,
    work: impl FnOnce() -> Result<T, GrammarError> + Send + 'static,
) -> Result<T, GrammarError> {
    let permit = THREADS.permit(interrupt)?;
    let (sender, receiver) = sync_channel(1);
    let thread = Builder::new().name("setun-grammar".to_owned()).stack_size(STACK);
    thread
        .spawn(move || {
            let result = work();
            drop(permit);
            sender.send(result)
        })
        .map_err(|error| GrammarError::Thread { reason: error.to_string() })?;
    loop {
        match receiver.recv_timeout(PAUSE) {
            Ok(result) => return result,
            Err(RecvTimeoutError::Timeout) => interrupt.check()?,
            Err(RecvTimeoutError::Disconnected) => {
                let reason = "it panicked while it compiled".to_owned();
                return Err(GrammarError::Parser { taken: 0, reason });
            }
        }
    }
}

/// How many more may work at once.
struct Permits {
    left: Mutex<usize>,
    returned: Condvar,
}

/// One of them, returned when it is dropped.
struct Permit<'a>(&'a Permits);

impl Permits {
    const fn new(left: usize) -> Self {
        Self { left: Mutex::new(left), returned: Condvar::new() }
    }

    /// Waits until one is left, unless it is interrupted.
    fn permit(&self, interrupt: &Interrupt) -> Result<Permit<'_>, GrammarError> {
        let mut left = self.left.lock().unwrap_or_else(PoisonError::into_inner);
        while *left == 0 {
            interrupt.check()?;
            let waited = self.returned.wait_timeout(left, PAUSE);
            left = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        *left -= 1;
        Ok(Permit(self))
    }
}

impl Drop for Permit<'_> {
    fn drop(&mut self) {
        *self.0.left.lock().unwrap_or_else(PoisonError::into_inner) += 1;
        self.0.returned.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_waits_for_a_permit_or_its_interrupt() {
        let permits = Permits::new(2);
        let interrupt = Interrupt::new();
        let held = [permits.permit(&interrupt), permits.permit(&interrupt)].map(Result::unwrap);
        let late = Interrupt::new().within(Duration::ZERO);
        let error = permits.permit(&late).map(drop).expect_err("none is left");
        assert!(matches!(error, GrammarError::Deadline { .. }), "{error}");
        std::thread::scope(|scope| {
            let waiting = scope.spawn(|| permits.permit(&interrupt).map(drop));
            drop(held);
            waiting.join().expect("no panic").expect("one is left");
        });
        assert_eq!(*permits.left.lock().expect("no panic"), 2);
    }
}
