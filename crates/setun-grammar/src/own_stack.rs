//! Work on a thread whose stack is known to suffice, wherever the caller runs.

use std::sync::mpsc::{RecvTimeoutError, sync_channel};
use std::thread::Builder;
use std::time::Duration;

use crate::{GrammarError, Interrupt};

/// Bytes of the stack. The deepest grammar takes some 4 MB of it without optimization; what is
/// not used takes no memory.
const STACK: usize = 64 << 20;

/// Time between two looks at the interrupt.
const PAUSE: Duration = Duration::from_millis(5);

/// What `work` gives. After an interrupt the caller waits no longer; the work ends by itself at
/// its next look, or at its limits.
pub(crate) fn on_own_stack<T: Send + 'static>(
    interrupt: &Interrupt,
    work: impl FnOnce() -> Result<T, GrammarError> + Send + 'static,
) -> Result<T, GrammarError> {
    let (sender, receiver) = sync_channel(1);
    let thread = Builder::new().name("setun-grammar".to_owned()).stack_size(STACK);
    thread
        .spawn(move || sender.send(work()))
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
