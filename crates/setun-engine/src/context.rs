//! Strategies for a text that outgrows the context.

use std::{fmt, sync::Arc};

use setun_text::MaybeShared;

use crate::error::Error;

/// Chooses what a model still sees of a text that fills its context. What it keeps is computed
/// anew at its new positions: keys in the cache belong to the positions that they were computed
/// for. What was generated already does not change, nor what options such as penalties look
/// back on.
pub trait ContextStrategy: MaybeShared {
    /// The tokens to go on from: one or more, and fewer than the context has positions.
    ///
    /// # Errors
    ///
    /// Whatever ends the generation.
    fn shorten(&self, full: &FullContext<'_>) -> Result<Vec<u32>, Error>;
}

/// A context that is full, or a prompt that is longer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct FullContext<'a> {
    /// What the model saw, or was to see.
    pub tokens: &'a [u32],
    /// Positions of the context.
    pub positions: usize,
}

/// Cuts tokens out of the middle: keeps the beginning and, of the end, as much as leaves a given
/// room.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TruncateMiddle {
    /// Tokens to keep of the beginning, such as a system message.
    pub first: usize,
    /// Positions to make free, one or more.
    pub room: usize,
}

/// Keeps some tokens of the beginning, to which attention clings wherever the text has gone, and
/// the last ones ("Efficient Streaming Language Models with Attention Sinks", Xiao et al. 2023).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SinksAndWindow {
    /// Tokens to keep of the beginning; four, in the paper.
    pub sinks: usize,
    /// Tokens to keep of the end.
    pub window: usize,
}

impl ContextStrategy for TruncateMiddle {
    fn shorten(&self, full: &FullContext<'_>) -> Result<Vec<u32>, Error> {
        let kept = full.positions.saturating_sub(self.room);
        let last = kept.saturating_sub(self.first);
        if last == 0 || self.room == 0 {
            let expected = format!(
                "a room of one or more that leaves of {} positions more than the first {}",
                full.positions, self.first
            );
            return Err(refused(self.room.to_string(), expected));
        }
        Ok(ends(full.tokens, self.first, last))
    }
}

impl ContextStrategy for SinksAndWindow {
    fn shorten(&self, full: &FullContext<'_>) -> Result<Vec<u32>, Error> {
        if self.window == 0 || self.sinks.saturating_add(self.window) >= full.positions {
            let expected = format!(
                "one or more that leave room in {} positions beside {} sinks",
                full.positions, self.sinks
            );
            return Err(refused(self.window.to_string(), expected));
        }
        Ok(ends(full.tokens, self.sinks, self.window))
    }
}

impl<F: Fn(&FullContext<'_>) -> Result<Vec<u32>, Error> + MaybeShared> ContextStrategy for F {
    fn shorten(&self, full: &FullContext<'_>) -> Result<Vec<u32>, Error> {
        self(full)
    }
}

/// The first and the last tokens, each once.
fn ends(tokens: &[u32], first: usize, last: usize) -> Vec<u32> {
    let first = first.min(tokens.len());
    let last = last.min(tokens.len() - first);
    [&tokens[..first], &tokens[tokens.len() - last..]].concat()
}

fn refused(found: String, expected: String) -> Error {
    Error::BadOption { option: "context", found, expected }
}

/// A [`ContextStrategy`] as options hold it. Equal is what is the same strategy.
#[derive(Clone)]
pub struct SharedContextStrategy(Arc<dyn ContextStrategy>);

impl SharedContextStrategy {
    /// From a strategy.
    pub fn new(strategy: impl ContextStrategy + 'static) -> Self {
        Self(Arc::new(strategy))
    }

    /// The tokens to go on from, which fit and belong to the vocabulary.
    pub(crate) fn shorten(
        &self,
        tokens: &[u32],
        positions: usize,
        vocabulary: usize,
    ) -> Result<Vec<u32>, Error> {
        let kept = self.0.shorten(&FullContext { tokens, positions })?;
        if !(1..positions).contains(&kept.len()) {
            let expected = format!("1 to {} tokens to go on from", positions.saturating_sub(1));
            return Err(refused(format!("{} tokens", kept.len()), expected));
        }
        match kept.iter().find(|&&token| token as usize >= vocabulary) {
            Some(token) => {
                Err(refused(format!("token {token}"), format!("tokens below {vocabulary}")))
            }
            None => Ok(kept),
        }
    }
}

impl fmt::Debug for SharedContextStrategy {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("SharedContextStrategy")
    }
}

impl PartialEq for SharedContextStrategy {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TOKENS: [u32; 10] = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9];

    fn shorten(
        strategy: impl ContextStrategy + 'static,
        positions: usize,
    ) -> Result<Vec<u32>, Error> {
        SharedContextStrategy::new(strategy).shorten(&TOKENS, positions, 10)
    }

    #[test]
    fn the_middle_goes_and_the_room_is_there() {
        assert_eq!(
            shorten(TruncateMiddle { first: 2, room: 3 }, 10).unwrap(),
            [0, 1, 5, 6, 7, 8, 9]
        );
        assert_eq!(shorten(TruncateMiddle { first: 0, room: 3 }, 6).unwrap(), [7, 8, 9]);
        assert_eq!(
            shorten(TruncateMiddle { first: 4, room: 1 }, 8).unwrap(),
            [0, 1, 2, 3, 7, 8, 9]
        );
        for (first, room) in [(7, 3), (0, 0), (0, 10), (usize::MAX, 1)] {
            assert!(shorten(TruncateMiddle { first, room }, 10).is_err(), "{first} {room}");
        }
    }

    #[test]
    fn sinks_and_the_last_stay() {
        assert_eq!(shorten(SinksAndWindow { sinks: 2, window: 3 }, 10).unwrap(), [0, 1, 7, 8, 9]);
        assert_eq!(shorten(SinksAndWindow { sinks: 0, window: 1 }, 2).unwrap(), [9]);
        for (sinks, window) in [(2, 0), (5, 5), (usize::MAX, 2)] {
            assert!(shorten(SinksAndWindow { sinks, window }, 10).is_err(), "{sinks} {window}");
        }
    }

    #[test]
    fn a_summary_has_to_fit_and_to_be_of_the_vocabulary() {
        let gives = |tokens: &'static [u32]| move |_: &FullContext<'_>| Ok(tokens.to_vec());
        assert_eq!(shorten(gives(&[4, 9]), 3).unwrap(), [4, 9]);
        for bad in [&[][..], &[1, 2, 3], &[10]] {
            assert!(shorten(gives(bad), 3).is_err(), "{bad:?}");
        }
    }
}
