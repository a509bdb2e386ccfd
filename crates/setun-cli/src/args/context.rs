//! What becomes of a text that outgrows the context.

use clap::ValueEnum;
use setun::{SharedContextStrategy, SinksAndWindow, TruncateMiddle};

/// Tokens of the beginning that a window keeps, as its paper has it.
const SINKS: usize = 4;

/// Ways to go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum WhenFull {
    /// The text ends, and the prompt is refused
    Stop,
    /// A quarter is cut out after the first quarter
    Middle,
    /// The first four tokens stay, and the last half
    Window,
}

impl WhenFull {
    /// For a context of so many positions.
    pub(super) fn strategy(self, positions: usize) -> Option<SharedContextStrategy> {
        let quarter = positions / 4;
        match self {
            Self::Stop => None,
            Self::Middle => {
                let middle = TruncateMiddle { first: quarter, room: quarter };
                Some(SharedContextStrategy::new(middle))
            }
            Self::Window => {
                let window = SinksAndWindow { sinks: SINKS, window: positions / 2 };
                Some(SharedContextStrategy::new(window))
            }
        }
    }
}
