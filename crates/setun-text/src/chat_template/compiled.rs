//! Instructions of a template together with its text, from which they borrow.

#![expect(unsafe_code, reason = "the instructions borrow from the text beside them")]

use std::sync::Arc;

use minijinja::Error;
use minijinja::machinery::Instructions;

/// A text with what is compiled of it.
pub(super) struct Compiled {
    /// Borrows from `text`, so it comes first: fields are dropped in their order.
    instructions: Instructions<'static>,
    text: Arc<str>,
}

impl Compiled {
    /// Compiles a text. As `compile` does not know how long it lives, it can keep no part of it.
    pub(super) fn new(
        text: &str,
        compile: impl for<'a> FnOnce(&'a str) -> Result<Instructions<'a>, Error>,
    ) -> Result<Self, Error> {
        let text = Arc::<str>::from(text);
        // SAFETY: the text is on the heap, is never changed, and stays until the instructions are
        // dropped, which nobody gets for longer than this value.
        let lasting: &'static str = unsafe { &*Arc::as_ptr(&text) };
        Ok(Self { instructions: compile(lasting)?, text })
    }

    /// The instructions, for as long as the text is there.
    pub(super) fn instructions(&self) -> &Instructions<'_> {
        &self.instructions
    }

    /// The text.
    pub(super) fn text(&self) -> &str {
        &self.text
    }
}
