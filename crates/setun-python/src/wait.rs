//! Waiting for an engine without Python's lock, until it has answered or Ctrl-C is pressed.

use std::{
    future::{Future, poll_fn},
    mem,
    pin::pin,
    sync::Arc,
    task::{Context, Poll, Wake, Waker},
    thread::{self, Thread},
    time::{Duration, Instant},
};

use pyo3::prelude::*;

/// The time between two looks at Python's signals.
const INTERVAL: Duration = Duration::from_millis(50);

/// The time before something is tried again.
const PAUSE: Duration = Duration::from_millis(20);

/// The result of a future. A signal whose handler raises, as that of Ctrl-C does, drops the future,
/// which ends its requests.
pub(crate) fn wait<F>(py: Python<'_>, future: F) -> PyResult<F::Output>
where
    F: Future + Send,
    F::Output: Send,
{
    py.detach(|| {
        let mut future = pin!(future);
        let waker = Waker::from(Arc::new(Unpark(thread::current())));
        let mut context = Context::from_waker(&waker);
        let mut next_look = Instant::now() + INTERVAL;
        loop {
            if let Poll::Ready(output) = future.as_mut().poll(&mut context) {
                return Ok(output);
            }
            thread::park_timeout(next_look.saturating_duration_since(Instant::now()));
            if Instant::now() >= next_look {
                raise_signals()?;
                next_look = Instant::now() + INTERVAL;
            }
        }
    })
}

/// Waits for a moment. [`wait`] has no runtime, and so no clock of one.
pub(crate) async fn pause() {
    let mut has_begun = false;
    poll_fn(|context| {
        if mem::replace(&mut has_begun, true) {
            return Poll::Ready(());
        }
        let waker = context.waker().clone();
        thread::spawn(move || {
            thread::sleep(PAUSE);
            waker.wake();
        });
        Poll::Pending
    })
    .await;
}

/// What the handler of a signal raises, if one has come.
pub(crate) fn raise_signals() -> PyResult<()> {
    Python::attach(|py| {
        py.check_signals()?;
        Ok(())
    })
}

struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}
