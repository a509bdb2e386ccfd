//! Time as the scheduler, the hub and the server read it.
//!
//! A [`Clock`] is the system's unless a test gives another: one that is *held* stands still until
//! the test moves it. So a test of a deadline waits for nothing, and says the same on a machine
//! that is busy.
//!
//! In WebAssembly there is the system's clock alone, and a [`Clock`] has no size.

#[cfg(not(target_family = "wasm"))]
mod held;

use std::time::Duration;

pub use web_time::Instant;

#[cfg(not(target_family = "wasm"))]
pub use held::Arrival;

/// A source of time. Clones are the same clock.
#[derive(Clone, Debug, Default)]
pub struct Clock {
    #[cfg(not(target_family = "wasm"))]
    held: Option<std::sync::Arc<held::Held>>, // none for the system's
}

impl Clock {
    /// The system's, which is the default.
    #[must_use]
    pub fn system() -> Self {
        Self::default()
    }

    /// The time now.
    #[inline]
    #[must_use]
    pub fn now(&self) -> Instant {
        #[cfg(not(target_family = "wasm"))]
        if let Some(held) = &self.held {
            return held.now();
        }
        Instant::now()
    }

    /// The time since a moment; none where that is to come.
    #[inline]
    #[must_use]
    pub fn since(&self, moment: Instant) -> Duration {
        self.now().saturating_duration_since(moment)
    }
}

#[cfg(not(target_family = "wasm"))]
impl Clock {
    /// A clock that stands still until it is [advanced](Self::advance).
    #[must_use]
    pub fn held() -> Self {
        Self { held: Some(std::sync::Arc::default()) }
    }

    /// A clock that moves by this time whenever it is read.
    #[must_use]
    pub fn ticking(tick: Duration) -> Self {
        Self { held: Some(std::sync::Arc::new(held::Held::ticking(tick))) }
    }

    /// Moves a held clock, and wakes who waits for a moment that has come with it. Nobody moves the
    /// system's.
    pub fn advance(&self, time: Duration) {
        self.held.iter().for_each(|held| held.advance(time));
    }

    /// Lets this time pass: a thread sleeps on the system's clock; a held one is advanced.
    pub fn pass(&self, time: Duration) {
        match &self.held {
            Some(held) => held.advance(time),
            None => std::thread::sleep(time),
        }
    }

    /// The moment at which a held clock shows this time. None of the system's: its waits are those
    /// of the caller's runtime.
    #[must_use]
    pub fn arrival(&self, end: Instant) -> Option<Arrival> {
        self.held.as_ref().map(|held| Arrival::new(std::sync::Arc::clone(held), end))
    }

    /// Tasks that wait for a held clock to be advanced.
    #[must_use]
    pub fn waiting(&self) -> usize {
        self.held.as_ref().map_or(0, |held| held.waiting())
    }
}
