//! The filter that is built in: words and regular expressions, replaced or ending the text.

mod attempt;
#[cfg(feature = "regex")]
mod expression;
mod filtered_text;
mod rules;
#[cfg(test)]
mod tests;
mod word;

use std::sync::Arc;

pub use rules::{FilterAction, FilterPattern, FilterRule};

use crate::{ContentFilter, FilterState, TextError};
use filtered_text::FilteredText;
use rules::Rule;

/// Replaces what matches a pattern, or ends the text before it.
///
/// - The text is read from its beginning. Where a pattern matches, its action is taken, and
///   reading goes on behind the match; of patterns that match at one place the first of the list
///   counts. What a match was replaced by is not looked at again.
/// - Text goes out as soon as it can no longer be part of a match, so nothing of one is ever
///   shown, and the result does not depend on the pieces that the text comes in.
/// - A word is held back as far as it has matched, and a whole word for one character more. A
///   regular expression sees at most [`MAX_MATCHED`](Self::MAX_MATCHED) characters from where
///   its match begins, and what lies around these only for its assertions: what would match more is
///   matched as far as that, or, if that much does not match, not there.
#[derive(Clone, Debug)]
pub struct PatternFilter {
    rules: Arc<[Rule]>,
}

impl PatternFilter {
    /// Most characters that a regular expression matches, which bounds what is held back.
    pub const MAX_MATCHED: usize = 512;

    /// From patterns and what to do about them.
    ///
    /// # Errors
    ///
    /// [`TextError::FilterPattern`] if a word is empty, or a regular expression is none, is too
    /// large, or matches the empty text.
    pub fn new(rules: impl IntoIterator<Item = FilterRule>) -> Result<Self, TextError> {
        let rules = rules.into_iter().enumerate();
        let rules = rules.map(|(index, rule)| Rule::new(index, rule)).collect::<Result<_, _>>()?;
        Ok(Self { rules })
    }
}

impl ContentFilter for PatternFilter {
    fn begin(&self) -> Box<dyn FilterState> {
        Box::new(FilteredText::new(Arc::clone(&self.rules)))
    }
}
