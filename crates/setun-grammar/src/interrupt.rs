//! An early end of a compilation.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

#[cfg(target_arch = "wasm32")]
use instant::Instant;
#[cfg(not(target_arch = "wasm32"))]
use std::time::Instant;

use crate::GrammarError;

/// Ends a compilation before it is done: at a deadline, or when somebody cancels it.
///
/// A clone is the same interrupt, so one may be kept and given to any thread.
#[derive(Clone, Debug, Default)]
pub struct Interrupt {
    cancelled: Arc<AtomicBool>,
    deadline: Option<(Instant, Duration)>, // and the time that it stands for
}

impl Interrupt {
    /// One that ends nothing until it is cancelled.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Also ends the compilation after this time, counted from now. A time beyond what the clock
    /// can count is none.
    #[must_use]
    pub fn within(self, time: Duration) -> Self {
        Self { deadline: Instant::now().checked_add(time).map(|end| (end, time)), ..self }
    }

    /// Ends the compilations that were given this interrupt, those to come included.
    pub fn cancel(&self) {
        self.cancelled.store(true, Ordering::Relaxed);
    }

    pub(crate) fn check(&self) -> Result<(), GrammarError> {
        if self.cancelled.load(Ordering::Relaxed) {
            return Err(GrammarError::Cancelled);
        }
        match self.deadline {
            Some((end, time)) if end <= Instant::now() => Err(GrammarError::Deadline { time }),
            _ => Ok(()),
        }
    }
}
