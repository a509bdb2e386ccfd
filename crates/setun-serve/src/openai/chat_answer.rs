//! Answers in a conversation: whole, and as chunks.

use std::{collections::BTreeMap, sync::Arc};

use serde::Serialize;
use setun::{Completion, Event, TextDelta, ToolCall, ToolCallDelta};

use super::{
    logprobs::ChatLogprobs,
    streaming::{Head, Streaming},
    usage::{ChunkUsage, Usage, finish_reason},
};
use crate::{generation::Encoder, sse, text_tokens::TextTokens, token_words::TokenWords};

/// The kind of a tool, of which there is one.
const FUNCTION: &str = "function";

/// Writes the chunks of an answer.
pub(super) struct ChatEncoder {
    head: Head,
    streaming: Streaming,
    /// With log-probabilities.
    words: Option<Arc<TokenWords>>,
    /// The choices that have begun.
    begun: Vec<usize>,
    /// Tokens of each choice whose text is still to come.
    tokens: BTreeMap<usize, TextTokens>,
    usage: Usage,
}

#[derive(Serialize)]
pub(super) struct ChatCompletion<'a> {
    id: &'a str,
    object: &'static str,
    created: u64,
    model: &'a str,
    choices: Vec<Choice<'a>>,
    usage: Usage,
}

#[derive(Serialize)]
struct Choice<'a> {
    index: usize,
    message: AnswerMessage<'a>,
    logprobs: Option<ChatLogprobs>,
    finish_reason: &'static str,
}

#[derive(Serialize)]
struct AnswerMessage<'a> {
    role: &'static str,
    content: Option<&'a str>,
    refusal: Option<()>,
    #[serde(flatten)]
    reasoning: Option<Reasoning<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tool_calls: Vec<Call<'a>>,
}

/// The model's reasoning, by both names that clients know.
#[derive(Serialize)]
struct Reasoning<'a> {
    reasoning_content: &'a str,
    reasoning: &'a str,
}

#[derive(Serialize)]
struct Call<'a> {
    id: &'a str,
    r#type: &'static str,
    function: Function<'a>,
}

#[derive(Serialize)]
struct Function<'a> {
    name: &'a str,
    arguments: &'a str,
}

#[derive(Serialize)]
struct Chunk<'a> {
    id: &'a str,
    object: &'static str,
    created: u64,
    model: &'a str,
    choices: &'a [ChunkChoice<'a>],
    #[serde(skip_serializing_if = "Option::is_none")]
    usage: Option<ChunkUsage>,
}

#[derive(Serialize)]
struct ChunkChoice<'a> {
    index: usize,
    delta: Delta<'a>,
    logprobs: Option<ChatLogprobs>,
    finish_reason: Option<&'static str>,
}

#[derive(Default, Serialize)]
struct Delta<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    role: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    content: Option<&'a str>,
    #[serde(flatten)]
    reasoning: Option<Reasoning<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tool_calls: Vec<CallDelta<'a>>,
}

/// A piece of a call. Id, type and name come once: clients join all pieces.
#[derive(Serialize)]
struct CallDelta<'a> {
    index: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    r#type: Option<&'static str>,
    function: FunctionDelta<'a>,
}

#[derive(Serialize)]
struct FunctionDelta<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<&'a str>,
    arguments: &'a str,
}

/// The whole answer.
pub(super) fn chat_completion<'a>(
    encoder: &'a ChatEncoder,
    completions: &'a [Completion],
) -> ChatCompletion<'a> {
    let mut usage = Usage::default();
    let choice = |(index, completion): (usize, &'a Completion)| {
        usage.add(&completion.done.usage, index == 0);
        let words = encoder.words.as_ref();
        Choice {
            index,
            message: AnswerMessage::new(completion),
            logprobs: words
                .map(|words| ChatLogprobs::new(words, &TextTokens::of(&completion.deltas))),
            finish_reason: finish_reason(completion.done.finish_reason),
        }
    };
    let choices = completions.iter().enumerate().map(choice).collect();
    let Head { id, created, model } = &encoder.head;
    ChatCompletion { id, object: "chat.completion", created: *created, model, choices, usage }
}

impl<'a> AnswerMessage<'a> {
    fn new(completion: &'a Completion) -> Self {
        let Completion { text, reasoning, tool_calls, .. } = completion;
        let is_call = text.is_empty() && !tool_calls.is_empty();
        let call = |ToolCall { id, name, arguments }: &'a ToolCall| Call {
            id,
            r#type: FUNCTION,
            function: Function { name, arguments },
        };
        Self {
            role: "assistant",
            content: (!is_call).then_some(text),
            refusal: None,
            reasoning: Reasoning::of(reasoning),
            tool_calls: tool_calls.iter().map(call).collect(),
        }
    }
}

impl<'a> Reasoning<'a> {
    /// The reasoning of a text; `None` if it is empty.
    fn of(text: &'a str) -> Option<Self> {
        (!text.is_empty()).then_some(Self { reasoning_content: text, reasoning: text })
    }
}

impl ChatEncoder {
    pub(super) fn new(head: Head, streaming: Streaming, words: Option<Arc<TokenWords>>) -> Self {
        let (begun, tokens, usage) = (vec![], BTreeMap::new(), Usage::default());
        Self { head, streaming, words, begun, tokens, usage }
    }

    fn chunk(&self, events: &mut Vec<u8>, choices: &[ChunkChoice<'_>], usage: Option<ChunkUsage>) {
        let Head { id, created, model } = &self.head;
        let object = "chat.completion.chunk";
        sse::push(events, &Chunk { id, object, created: *created, model, choices, usage });
    }

    fn choice(&self, events: &mut Vec<u8>, choice: ChunkChoice<'_>) {
        self.chunk(events, &[choice], self.streaming.pending());
    }

    /// A chunk with the beginning of a choice, before its first.
    fn begin(&mut self, index: usize, events: &mut Vec<u8>) {
        if self.begun.contains(&index) {
            return;
        }
        self.begun.push(index);
        let delta = Delta { role: Some("assistant"), content: Some(""), ..Delta::default() };
        self.choice(events, ChunkChoice { index, delta, logprobs: None, finish_reason: None });
    }

    fn text(&mut self, index: usize, delta: &TextDelta, events: &mut Vec<u8>) {
        let tokens = self.tokens.entry(index).or_default().take(delta);
        if let Some(reasoning) = Reasoning::of(delta.reasoning.as_deref().unwrap_or_default()) {
            let delta = Delta { reasoning: Some(reasoning), ..Delta::default() };
            self.choice(events, ChunkChoice { index, delta, logprobs: None, finish_reason: None });
        }
        if !delta.text.is_empty() {
            let words = self.words.as_ref();
            let logprobs = words.map(|words| ChatLogprobs::new(words, &tokens));
            let delta = Delta { content: Some(&delta.text), ..Delta::default() };
            self.choice(events, ChunkChoice { index, delta, logprobs, finish_reason: None });
        }
        if !delta.tool_calls.is_empty() {
            let tool_calls = delta.tool_calls.iter().map(CallDelta::new).collect();
            let delta = Delta { tool_calls, ..Delta::default() };
            self.choice(events, ChunkChoice { index, delta, logprobs: None, finish_reason: None });
        }
    }
}

impl<'a> CallDelta<'a> {
    fn new(call: &'a ToolCallDelta) -> Self {
        let ToolCallDelta { index, id, name, arguments } = call;
        Self {
            index: *index,
            id: id.as_deref(),
            r#type: id.is_some().then_some(FUNCTION),
            function: FunctionDelta { name: name.as_deref(), arguments },
        }
    }
}

impl Encoder for ChatEncoder {
    fn event(&mut self, index: usize, event: &Event, events: &mut Vec<u8>) {
        self.begin(index, events);
        match event {
            Event::Progress(_) | Event::Prompt(_) => {}
            Event::Text(delta) => self.text(index, delta, events),
            Event::Done(done) => {
                self.usage.add(&done.usage, index == 0);
                let finish_reason = Some(finish_reason(done.finish_reason));
                let delta = Delta::default();
                self.choice(events, ChunkChoice { index, delta, logprobs: None, finish_reason });
            }
        }
    }

    fn end(&mut self, events: &mut Vec<u8>) {
        if self.streaming.includes_usage {
            self.chunk(events, &[], Some(ChunkUsage::Total(self.usage)));
        }
        sse::push_done(events);
    }
}

#[cfg(test)]
mod tests;
