//! Context overflow: strategies for a text longer than the context.

use clap::ValueEnum;
use setun::{SharedContextStrategy, SinksAndWindow, TruncateMiddle};

/// Tokens of the beginning that a window keeps, as its paper has it.
const SINKS: usize = 4;

/// Strategies for a text that exceeds the context.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum ContextOverflow {
    /// End the text; refuse a prompt that is too long
    Stop,
    /// Cut out a quarter of the context after its first quarter
    TruncateMiddle,
    /// Keep the first four tokens (attention sinks) and the last half
    SlidingWindow,
}

impl ContextOverflow {
    /// The strategy for a context of this length.
    pub(super) fn strategy(self, positions: usize) -> Option<SharedContextStrategy> {
        let quarter = positions / 4;
        match self {
            Self::Stop => None,
            Self::TruncateMiddle => {
                let middle = TruncateMiddle { first: quarter, room: quarter };
                Some(SharedContextStrategy::new(middle))
            }
            Self::SlidingWindow => {
                let window = SinksAndWindow { sinks: SINKS, window: positions / 2 };
                Some(SharedContextStrategy::new(window))
            }
        }
    }
}
