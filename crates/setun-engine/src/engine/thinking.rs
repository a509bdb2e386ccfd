//! Reasoning at the beginning of an answer.

use setun_text::ReasoningReader;

use super::Engine;
use crate::{error::Error, options::GenerateOptions, thinking::Thinking};

impl Engine {
    /// Whether the chat template is one of a model that [thinks](setun_text::ChatTemplate::thinks).
    #[must_use]
    pub fn thinks(&self) -> bool {
        self.shared.template.as_ref().is_some_and(|template| template.thinks())
    }

    /// The reader of the reasoning after a prompt; none where the model does not think, or the prompt
    /// has closed its reasoning.
    ///
    /// A prompt that begins an answer ends with the opening marker, if it has one. Of any other the
    /// last marker behind the last token that ends a text counts.
    pub(super) fn thinking(
        &self,
        prompt: &[u32],
        begins_answer: bool,
        options: &GenerateOptions,
    ) -> Result<Option<Thinking>, Error> {
        let Some(tokenizer) = self.shared.tokenizer.as_ref().filter(|_| self.thinks()) else {
            return Ok(None);
        };
        let [open, close] = ReasoningReader::MARKERS;
        let ends = &self.shared.eos_tokens;
        let begin = prompt.iter().rposition(|token| ends.contains(token)).map_or(0, |end| end + 1);
        let turn = tokenizer.decode(&prompt[begin..], false)?;
        let turn = turn.trim_end();
        if turn.ends_with(close) {
            return Ok(None);
        }
        let is_open =
            if begins_answer { turn.ends_with(open) } else { turn.rfind(open) > turn.rfind(close) };
        let tokens = [open, close].map(|marker| tokenizer.token_to_id(marker));
        let mut closing = match tokens[1] {
            Some(token) => vec![token],
            None => tokenizer.encode(close, false)?,
        };
        if closing.iter().any(|&token| token as usize >= self.shared.vocab_size) {
            closing.clear(); // the model cannot write it
        }
        let thinking = Thinking::new(tokens, closing, options.thinking_budget(), is_open);
        let is_constrained = options.constraint.is_some();
        Ok(Some(if is_constrained { thinking.constrained() } else { thinking }))
    }
}

#[cfg(all(test, not(target_family = "wasm")))]
mod tests;
