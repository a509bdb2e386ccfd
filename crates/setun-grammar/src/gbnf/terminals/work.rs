//! A bound on the search for terminals.

/// Steps that are left.
pub(super) struct Work(usize);

impl Work {
    /// Some 10 ms of steps.
    pub(super) fn new() -> Self {
        Self(2_000_000)
    }

    pub(super) fn spend(&mut self, steps: usize) {
        self.0 = self.0.saturating_sub(steps);
    }

    pub(super) fn is_left(&self) -> bool {
        self.0 > 0
    }
}
