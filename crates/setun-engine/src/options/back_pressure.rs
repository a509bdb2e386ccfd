//! Generations whose consumers lag.

use setun_text::named_options;

/// What happens to a generation whose consumer does not keep up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum BackPressure {
    /// It waits for its consumer. Whoever else runs goes on, and may take its memory.
    #[default]
    Pause,
    /// It ends, with [`FinishReason::Aborted`](crate::FinishReason::Aborted).
    End,
}

named_options!(BackPressure { Pause = "pause", End = "end" });
