//! Calls of functions in what a model writes.

mod format;
mod read;

use serde_json::{Map, Value};

pub use format::ToolFormat;
use read::Read;

/// A function that the model wants called.
#[derive(Clone, Debug, PartialEq)]
pub struct ToolCall {
    /// Name of the function. Whether there is one of that name is for the caller to see.
    pub name: String,
    /// The arguments by name.
    pub arguments: Map<String, Value>,
    /// The call's own name, of the families that write one.
    pub id: Option<String>,
}

/// Finds calls in a stream of text.
///
/// Text goes out as soon as it cannot be part of a call any more. What begins like a call and is
/// none goes out as the text that it is; only white space beside calls is dropped. The markers of
/// calls are special tokens of some models: the text must be decoded with these in it.
#[derive(Clone, Debug)]
pub struct ToolCallParser {
    format: ToolFormat,
    /// What may become a call.
    held: String,
    /// White space, which goes out with the text that follows it.
    blank: String,
    /// Whether no text has gone out.
    at_start: bool,
    /// Whether a call came last.
    after_call: bool,
}

/// What one piece of text led to. Text before a call and text after it are given together.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ToolStep {
    /// Text to show now; may be empty.
    pub text: String,
    /// Calls that are complete now.
    pub calls: Vec<ToolCall>,
}

impl ToolCallParser {
    /// Looks for calls as a family writes them.
    #[must_use]
    pub fn new(format: ToolFormat) -> Self {
        let (held, blank) = (String::new(), String::new());
        Self { format, held, blank, at_start: true, after_call: false }
    }

    /// Takes the next piece of text.
    pub fn push(&mut self, text: &str) -> ToolStep {
        self.held.push_str(text);
        self.step(false)
    }

    /// The end of the generation: what is left, a call that only lacks its end included.
    pub fn finish(&mut self) -> ToolStep {
        let mut step = self.step(true);
        let blank = std::mem::take(&mut self.blank);
        if !self.after_call {
            step.text.push_str(&blank);
        }
        step
    }

    fn step(&mut self, ended: bool) -> ToolStep {
        let mut step = ToolStep::default();
        while !self.held.is_empty() {
            let before = self.format.text_before(&self.held, self.at_start, ended);
            if before > 0 {
                self.let_out(before, &mut step.text);
                continue;
            }
            match self.format.read(&self.held, ended) {
                Read::Calls(calls, length) => {
                    step.calls.extend(calls);
                    self.held.drain(..length);
                    self.blank.clear();
                    self.after_call = true;
                }
                Read::Unfinished => break,
                // The first character is text; a later one may begin a call.
                Read::Nothing => {
                    let first = self.held.chars().next().map_or(0, char::len_utf8);
                    self.let_out(first, &mut step.text);
                }
            }
        }
        step
    }

    /// Hands out the first bytes that are held, but for white space at their end.
    fn let_out(&mut self, length: usize, text: &mut String) {
        self.blank.extend(self.held.drain(..length));
        let shown = self.blank.trim_end().len();
        if shown > 0 {
            text.extend(self.blank.drain(..shown));
            self.at_start = false;
            self.after_call = false;
        }
    }
}

#[cfg(test)]
mod tests;
