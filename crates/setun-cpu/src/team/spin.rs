//! A wait that spins for a moment before its thread sleeps.

use std::hint::spin_loop;

/// How long to spin before sleeping: waking up costs about as much.
#[cfg(not(target_arch = "wasm32"))]
const SPIN: std::time::Duration = std::time::Duration::from_micros(20);

/// Counts the turns of a spinning wait.
pub(super) struct Spin {
    turns: u32,
    #[cfg(not(target_arch = "wasm32"))]
    since: Option<std::time::Instant>,
}

#[cfg(not(target_arch = "wasm32"))]
impl Spin {
    pub(super) fn new() -> Self {
        Self { turns: 0, since: None }
    }

    /// Waits a moment; false if the time to spin is over.
    pub(super) fn turn(&mut self) -> bool {
        spin_loop();
        self.turns += 1;
        // The clock costs more than a turn.
        if !self.turns.is_multiple_of(32) {
            return true;
        }
        self.since.get_or_insert_with(std::time::Instant::now).elapsed() < SPIN
    }
}

#[cfg(target_arch = "wasm32")]
impl Spin {
    pub(super) fn new() -> Self {
        Self { turns: 0 }
    }

    /// Waits a moment; false after about 20 µs. There is no clock to ask.
    pub(super) fn turn(&mut self) -> bool {
        const TURNS: u32 = 10_000;
        spin_loop();
        self.turns += 1;
        self.turns < TURNS
    }
}
