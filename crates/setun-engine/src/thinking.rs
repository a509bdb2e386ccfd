//! Reasoning of a generation: its text, its budget and its end.

use setun_text::{ReasoningReader, ReasoningStep};

/// The reasoning of a generation so far.
#[derive(Clone, Debug)]
pub(crate) struct Thinking {
    reader: ReasoningReader,
    /// The token of the opening marker, if it is one.
    open: Option<u32>,
    /// The tokens of the closing marker, which are generated once the budget is spent.
    close: Vec<u32>,
    budget: usize,
    /// Whether the answer has a constraint, which knows nothing of the reasoning.
    is_constrained: bool,
    tokens: usize, // of reasoning, without markers
    forced: usize, // of the closing marker's
    must_close: bool,
}

impl Thinking {
    /// Begins before an answer, or where the prompt has the opening marker.
    pub(crate) fn new(
        tokens: [Option<u32>; 2],
        close: Vec<u32>,
        budget: usize,
        is_open: bool,
    ) -> Self {
        Self {
            reader: ReasoningReader::new(tokens, is_open),
            open: tokens[0],
            close,
            budget,
            is_constrained: false,
            tokens: 0,
            forced: 0,
            must_close: false,
        }
    }

    /// The answer has a constraint. Whoever cannot tell the opening marker by its token does not
    /// think before such an answer.
    pub(crate) fn constrained(mut self) -> Self {
        self.is_constrained = true;
        if self.open.is_none() && self.reader.is_start() {
            self.reader.begin_answer();
        }
        self
    }

    /// Whether the next token belongs to the reasoning or its closing marker.
    pub(crate) fn is_open(&self) -> bool {
        self.reader.is_open()
    }

    /// The token that may come beside those that a constraint allows: reasoning begins with it.
    pub(crate) fn opening(&self) -> Option<u32> {
        self.open.filter(|_| self.reader.is_start())
    }

    /// Whether a token may be forced.
    pub(crate) fn is_limited(&self) -> bool {
        self.budget < usize::MAX && (self.is_open() || self.reader.is_start())
    }

    /// The next token, where it belongs to a closing marker that is forced.
    pub(crate) fn forced(&self) -> Option<u32> {
        let is_due = self.must_close || self.tokens >= self.budget;
        self.close.get(self.forced).copied().filter(|_| is_due && self.is_open())
    }

    /// The text would end inside the reasoning: the closing marker comes in place of that, and then
    /// the answer. Its first token.
    pub(crate) fn close(&mut self) -> Option<u32> {
        self.must_close = true;
        self.forced()
    }

    /// Tokens of reasoning, without the markers'.
    pub(crate) fn tokens(&self) -> usize {
        self.tokens
    }

    /// Takes a token and the text that it completes; with `last` what is held back comes out. A
    /// token that ends the text counts as none.
    pub(crate) fn push(
        &mut self,
        token: u32,
        text: String,
        ends: bool,
        last: bool,
    ) -> ReasoningStep {
        let (was_open, is_forced) = (self.is_open(), self.forced() == Some(token));
        if self.is_constrained && self.reader.is_start() && self.open != Some(token) {
            self.reader.begin_answer();
        }
        let mut step = self.reader.push(token, text);
        if was_open {
            if !ends {
                self.count(is_forced);
            }
            if self.is_constrained && !self.is_open() {
                // What the constraint has not seen is no part of the answer.
                self.reader.begin_answer();
                step.text.clear();
            }
        }
        if last {
            let rest = self.reader.finish();
            step.text.push_str(&rest.text);
            if let Some(rest) = rest.reasoning {
                step.reasoning.get_or_insert_default().push_str(&rest);
            }
        }
        step
    }

    /// Counts a token behind the opening marker.
    fn count(&mut self, is_forced: bool) {
        if is_forced {
            self.forced += 1;
            if self.forced == self.close.len() && self.is_open() {
                self.reader.begin_answer(); // however its tokens are spelt here
            }
        } else if self.is_open() {
            self.tokens += 1;
        } else {
            let counted = self.close.len().saturating_sub(1);
            self.tokens = self.tokens.saturating_sub(counted);
        }
    }
}
