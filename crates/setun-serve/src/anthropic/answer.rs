//! Messages as JSON.

use serde::Serialize;
use serde_json::{Map, Value};
use setun::{Done, FinishReason, ToolCall};

use crate::{
    answer_parts::{Part, Parts},
    openai::streaming::Head,
};

/// An answer.
#[derive(Serialize)]
pub(super) struct Message<'a> {
    id: &'a str,
    r#type: &'static str,
    role: &'static str,
    model: &'a str,
    content: Vec<Block<'a>>,
    #[serde(flatten)]
    stop: Stop<'a>,
    usage: Usage,
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum Block<'a> {
    /// The signature is empty: reasoning of any origin is read.
    Thinking {
        thinking: &'a str,
        signature: &'static str,
    },
    Text {
        text: &'a str,
    },
    ToolUse {
        id: &'a str,
        name: &'a str,
        input: Map<String, Value>,
        /// Whether its arguments were cut off. Then none are here.
        #[serde(skip_serializing_if = "std::ops::Not::not")]
        unfinished: bool,
    },
}

/// Why an answer ended; nothing before it has.
#[derive(Default, Serialize)]
pub(super) struct Stop<'a> {
    stop_reason: Option<&'static str>,
    stop_sequence: Option<&'a str>,
    /// Whether a call or the text of a format was cut off.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    unfinished: bool,
}

/// Tokens of an answer. Those of the prompt that were in the cache are not part of the others.
#[derive(Default, Serialize)]
#[expect(clippy::struct_field_names, reason = "the names of the API")]
pub(super) struct Usage {
    input_tokens: usize,
    cache_creation_input_tokens: usize,
    cache_read_input_tokens: usize,
    output_tokens: usize,
}

impl<'a> Message<'a> {
    pub(super) fn whole(head: &'a Head, parts: &'a Parts, done: &'a Done) -> Self {
        let content = parts.list().iter().map(Block::whole).collect();
        let (stop, usage) = (Stop::new(done), Usage::new(&done.usage));
        Self { content, stop, ..Self::empty(head, usage) }
    }

    /// The message before its first block.
    pub(super) fn empty(head: &'a Head, usage: Usage) -> Self {
        let Head { id, model, .. } = head;
        Self {
            id,
            r#type: "message",
            role: "assistant",
            model,
            content: vec![],
            stop: Stop::default(),
            usage,
        }
    }
}

impl<'a> Block<'a> {
    fn whole(part: &'a Part) -> Self {
        match part {
            Part::Reasoning(thinking) => Self::Thinking { thinking, signature: "" },
            Part::Text { text, .. } => Self::Text { text },
            Part::Call(ToolCall { id, name, arguments }) => {
                let input: Option<Map<String, Value>> = serde_json::from_str(arguments).ok();
                let unfinished = input.is_none();
                let mut input = input.unwrap_or_default();
                input.values_mut().for_each(keep_integers);
                Self::ToolUse { id, name, input, unfinished }
            }
        }
    }

    /// The block before its first piece.
    pub(super) fn empty(part: &'a Part) -> Self {
        match part {
            Part::Reasoning(_) => Self::Thinking { thinking: "", signature: "" },
            Part::Text { .. } => Self::Text { text: "" },
            Part::Call(ToolCall { id, name, .. }) => {
                Self::ToolUse { id, name, input: Map::new(), unfinished: false }
            }
        }
    }
}

impl<'a> Stop<'a> {
    pub(super) fn new(done: &'a Done) -> Self {
        let reason = match done.finish_reason {
            FinishReason::Stop if done.stop.is_some() => "stop_sequence",
            FinishReason::Stop | FinishReason::Aborted => "end_turn",
            FinishReason::Length | FinishReason::Timeout => "max_tokens",
            FinishReason::ToolCalls => "tool_use",
            FinishReason::ContentFilter => "refusal",
        };
        let unfinished = done.unfinished;
        Self { stop_reason: Some(reason), stop_sequence: done.stop.as_deref(), unfinished }
    }
}

impl Usage {
    pub(super) fn new(usage: &setun::Usage) -> Self {
        let setun::Usage { prompt_tokens, completion_tokens, cached_tokens, .. } = *usage;
        Self {
            input_tokens: prompt_tokens.saturating_sub(cached_tokens),
            cache_creation_input_tokens: 0,
            cache_read_input_tokens: cached_tokens,
            output_tokens: completion_tokens,
        }
    }

    /// The usage of a prompt that is being computed.
    pub(super) fn of_prompt(input_tokens: usize) -> Self {
        Self { input_tokens, ..Self::default() }
    }
}

/// Makes `-0` an integer again: `serde_json` reads it as the float that it would write as `-0.0`.
fn keep_integers(value: &mut Value) {
    let is_minus_zero = |it: f64| it.to_bits() == (-0.0_f64).to_bits();
    match value {
        Value::Number(number) if number.as_f64().is_some_and(is_minus_zero) => *value = 0.into(),
        Value::Array(values) => values.iter_mut().for_each(keep_integers),
        Value::Object(fields) => fields.values_mut().for_each(keep_integers),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_integer_stays_one_where_it_is_minus_zero() {
        let arguments = r#"{"a": -0, "b": [{"c": -0}, -1, 0.5], "d": "-0"}"#.to_owned();
        let call = ToolCall { id: "c1".to_owned(), name: "f".to_owned(), arguments };
        let block = serde_json::to_string(&Block::whole(&Part::Call(call))).expect("JSON");
        let input = r#"{"a":0,"b":[{"c":0},-1,0.5],"d":"-0"}"#;
        assert!(block.ends_with(&format!("\"input\":{input}}}")), "{block}");
    }
}
