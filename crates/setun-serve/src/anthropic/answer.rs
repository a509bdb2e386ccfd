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
    Text { text: &'a str },
    ToolUse { id: &'a str, name: &'a str, input: Map<String, Value> },
}

/// Why an answer ended; nothing before it has.
#[derive(Default, Serialize)]
pub(super) struct Stop<'a> {
    stop_reason: Option<&'static str>,
    stop_sequence: Option<&'a str>,
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
            Part::Text { text, .. } => Self::Text { text },
            Part::Call(ToolCall { id, name, arguments }) => {
                // Arguments that were cut off are none.
                let input = serde_json::from_str(arguments).unwrap_or_default();
                Self::ToolUse { id, name, input }
            }
        }
    }

    /// The block before its first piece.
    pub(super) fn empty(part: &'a Part) -> Self {
        match part {
            Part::Text { .. } => Self::Text { text: "" },
            Part::Call(ToolCall { id, name, .. }) => Self::ToolUse { id, name, input: Map::new() },
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
        Self { stop_reason: Some(reason), stop_sequence: done.stop.as_deref() }
    }
}

impl Usage {
    pub(super) fn new(usage: &setun::Usage) -> Self {
        let setun::Usage { prompt_tokens, completion_tokens, cached_tokens } = *usage;
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
