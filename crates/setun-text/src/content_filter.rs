//! The interface of content filters.

use std::{fmt, sync::Arc};

use crate::{MaybeShared, TextError};

/// A filter of the texts of generations: it may hold text back, replace it, or end the text.
///
/// Texts share it, and each is followed by a state of its own. What a state lets through should
/// follow from the text alone, not from the pieces that it comes in, as these are what tokens
/// happen to spell.
pub trait ContentFilter: MaybeShared {
    /// The state before the first piece of a text.
    fn begin(&self) -> Box<dyn FilterState>;
}

/// A filter at some place of a text.
pub trait FilterState: MaybeShared {
    /// Takes the next piece of the text, which may be empty. After a step that has stopped no
    /// more comes.
    ///
    /// # Errors
    ///
    /// Whatever keeps it from its work, as [`TextError::Filter`]: the generation ends, and
    /// nothing that is held is shown.
    fn push(&mut self, text: &str) -> Result<FilterStep, TextError>;

    /// The text is over: what was held comes out, as far as it may be shown.
    ///
    /// # Errors
    ///
    /// As [`push`](Self::push).
    fn finish(&mut self) -> Result<FilterStep, TextError>;
}

/// What one piece of text led to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FilterStep {
    /// Text to show now; may be empty.
    pub text: String,
    /// Whether the text ends here. Nothing comes after it.
    pub stopped: bool,
}

impl FilterStep {
    /// Goes on, and shows this.
    pub fn show(text: impl Into<String>) -> Self {
        Self { text: text.into(), stopped: false }
    }

    /// Shows this, and ends the text.
    pub fn stop(text: impl Into<String>) -> Self {
        Self { text: text.into(), stopped: true }
    }
}

/// A [`ContentFilter`] as options hold it. Equal is what is the same filter.
#[derive(Clone)]
pub struct SharedFilter(Arc<dyn ContentFilter>);

impl SharedFilter {
    /// From a filter.
    pub fn new(filter: impl ContentFilter + 'static) -> Self {
        Self(Arc::new(filter))
    }

    /// The filter at the beginning of a text.
    #[must_use]
    pub fn begin(&self) -> FilteredText {
        FilteredText(self.0.begin())
    }
}

impl fmt::Debug for SharedFilter {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("SharedFilter")
    }
}

impl PartialEq for SharedFilter {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

/// One text on its way through a [`SharedFilter`].
pub struct FilteredText(Box<dyn FilterState>);

impl FilteredText {
    /// Takes the next piece of the text, and with `last` its end.
    ///
    /// # Errors
    ///
    /// What the filter fails with.
    pub fn push(&mut self, text: &str, last: bool) -> Result<FilterStep, TextError> {
        let mut step = self.0.push(text)?;
        if last && !step.stopped {
            let rest = self.0.finish()?;
            step.text.push_str(&rest.text);
            step.stopped = rest.stopped;
        }
        Ok(step)
    }
}

impl fmt::Debug for FilteredText {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("FilteredText")
    }
}

crate::structured_options!(SharedFilter);
