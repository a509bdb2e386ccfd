//! Tokens of an answer's text, of which log-probabilities are told.

use std::mem;

use setun::TextDelta;

/// Tokens whose text has not come yet. Those of an end token, of a stop string and of the markup of
/// calls never have any.
#[derive(Debug, Default)]
pub(crate) struct TextTokens(Vec<TextDelta>);

impl TextTokens {
    /// Takes what came; the tokens of the text that it completes.
    pub(crate) fn take(&mut self, delta: &TextDelta) -> Vec<TextDelta> {
        if delta.logprob.is_some() && delta.reasoning.is_none() {
            let (text, tool_calls) = (String::new(), vec![]);
            self.0.push(TextDelta { text, tool_calls, ..delta.clone() });
        }
        let tokens = if delta.text.is_empty() { vec![] } else { mem::take(&mut self.0) };
        if !delta.tool_calls.is_empty() {
            self.0.clear(); // they are of the call
        }
        tokens
    }

    /// Those of a whole answer.
    pub(crate) fn of(deltas: &[TextDelta]) -> Vec<TextDelta> {
        let mut tokens = Self::default();
        deltas.iter().flat_map(|delta| tokens.take(delta)).collect()
    }
}

#[cfg(test)]
mod tests {
    use setun::text::ToolCallDelta;

    use super::*;

    #[test]
    fn tokens_without_text_are_those_of_the_next_text_or_of_none() {
        let delta = |token, text: &str| TextDelta {
            token,
            text: text.to_owned(),
            logprob: Some(-1.0),
            ..TextDelta::default()
        };
        let tokens = |deltas: &[TextDelta]| -> Vec<u32> {
            TextTokens::of(deltas).iter().map(|delta| delta.token).collect()
        };
        let (half, rest, end) = (delta(1, ""), delta(2, "é"), delta(9, ""));
        assert_eq!(tokens(&[delta(0, "a"), half.clone(), rest.clone(), end.clone()]), [0, 1, 2]);
        let calls = vec![ToolCallDelta::default()];
        let call = TextDelta { tool_calls: calls, ..delta(3, "") };
        assert_eq!(tokens(&[delta(0, "a"), half.clone(), call.clone(), end.clone()]), [0]);
        assert_eq!(tokens(&[half.clone(), call, end]), [0; 0]);
        let thought = TextDelta { reasoning: Some("hm".to_owned()), ..delta(4, "") };
        assert_eq!(tokens(&[thought, half, rest]), [1, 2]);
    }
}
