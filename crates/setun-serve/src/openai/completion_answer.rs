//! Continued texts: whole, and as chunks.

use std::{borrow::Cow, sync::Arc};

use serde::Serialize;
use setun::{Completion, Event, FinishReason, TextDelta};

use super::{
    logprobs::CompletionLogprobs,
    streaming::{Head, Streaming},
    usage::{ChunkUsage, Usage, finish_reason},
};
use crate::{generation::Encoder, sse, token_words::TokenWords};

/// Writes the chunks of texts.
pub(super) struct CompletionEncoder {
    head: Head,
    streaming: Streaming,
    /// With log-probabilities.
    words: Option<Arc<TokenWords>>,
    /// The texts of the prompts, if they are part of the answer.
    prompts: Vec<String>,
    samples: usize,
    /// Of each choice that has begun its number, and the characters of its text so far.
    begun: Vec<(usize, usize)>,
    usage: Usage,
}

#[derive(Serialize)]
pub(super) struct TextCompletion<'a> {
    id: &'a str,
    object: &'static str,
    created: u64,
    model: &'a str,
    choices: Vec<Choice<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    usage: Option<ChunkUsage>,
}

#[derive(Serialize)]
struct Choice<'a> {
    index: usize,
    text: Cow<'a, str>,
    logprobs: Option<CompletionLogprobs>,
    finish_reason: Option<&'static str>,
}

/// The whole answer.
pub(super) fn completion<'a>(
    encoder: &'a CompletionEncoder,
    completions: &'a [Completion],
) -> TextCompletion<'a> {
    let mut usage = Usage::default();
    let choice = |(index, completion): (usize, &'a Completion)| {
        let Completion { prompt, text, deltas, done, .. } = completion;
        usage.add(&done.usage, encoder.is_first(index));
        let echoed = encoder.prompt(index);
        let logprobs = |words: &Arc<TokenWords>| {
            CompletionLogprobs::new(words, prompt.iter().chain(deltas), &mut 0)
        };
        let text = if echoed.is_empty() { text.into() } else { format!("{echoed}{text}").into() };
        let logprobs = encoder.words.as_ref().map(logprobs);
        Choice { index, text, logprobs, finish_reason: Some(end(done.finish_reason)) }
    };
    let choices = completions.iter().enumerate().map(choice).collect();
    encoder.answer(choices, Some(ChunkUsage::Total(usage)))
}

impl CompletionEncoder {
    pub(super) fn new(head: Head, streaming: Streaming, words: Option<Arc<TokenWords>>) -> Self {
        let (prompts, begun, usage) = (vec![], vec![], Usage::default());
        Self { head, streaming, words, prompts, samples: 1, begun, usage }
    }

    /// With the texts of the prompts, if they are part of the answer, and the texts of each.
    pub(super) fn with_prompts(self, prompts: Vec<String>, samples: usize) -> Self {
        Self { prompts, samples, ..self }
    }

    fn is_first(&self, index: usize) -> bool {
        index.is_multiple_of(self.samples)
    }

    /// The text of a choice's prompt, if it is part of the answer.
    fn prompt(&self, index: usize) -> &str {
        self.prompts.get(index / self.samples).map(String::as_str).unwrap_or_default()
    }

    fn answer<'a>(
        &'a self,
        choices: Vec<Choice<'a>>,
        usage: Option<ChunkUsage>,
    ) -> TextCompletion<'a> {
        let Head { id, created, model } = &self.head;
        TextCompletion { id, object: "text_completion", created: *created, model, choices, usage }
    }

    fn choice(&self, choice: Choice<'_>, events: &mut Vec<u8>) {
        sse::push(events, &self.answer(vec![choice], self.streaming.pending()));
    }

    /// A chunk with the prompt, if it is part of the answer, before a choice's first.
    fn begin(&mut self, index: usize, event: &Event, events: &mut Vec<u8>) {
        if self.begun.iter().any(|(begun, _)| *begun == index) {
            return;
        }
        let mut offset = 0;
        if !self.prompts.is_empty() {
            let tokens = match event {
                Event::Prompt(prompt) => &prompt.tokens[..],
                _ => &[],
            };
            let words = self.words.as_ref();
            let logprobs = words.map(|words| CompletionLogprobs::new(words, tokens, &mut offset));
            let text = Cow::Borrowed(self.prompt(index));
            self.choice(Choice { index, text, logprobs, finish_reason: None }, events);
        }
        self.begun.push((index, offset));
    }

    fn text(&mut self, index: usize, delta: &TextDelta, events: &mut Vec<u8>) {
        let words = self.words.clone();
        let begun = self.begun.iter_mut().find(|(begun, _)| *begun == index);
        let logprobs = words.zip(begun).map(|(words, (_, offset))| {
            CompletionLogprobs::new(&words, std::slice::from_ref(delta), offset)
        });
        if !delta.text.is_empty() || logprobs.is_some() {
            let text = Cow::Borrowed(delta.text.as_str());
            self.choice(Choice { index, text, logprobs, finish_reason: None }, events);
        }
    }
}

impl Encoder for CompletionEncoder {
    fn event(&mut self, index: usize, event: &Event, events: &mut Vec<u8>) {
        self.begin(index, event, events);
        match event {
            Event::Progress(_) | Event::Prompt(_) => {}
            Event::Text(delta) => self.text(index, delta, events),
            Event::Done(done) => {
                self.usage.add(&done.usage, self.is_first(index));
                let (text, finish_reason) = (Cow::Borrowed(""), Some(end(done.finish_reason)));
                self.choice(Choice { index, text, logprobs: None, finish_reason }, events);
            }
        }
    }

    fn end(&mut self, events: &mut Vec<u8>) {
        if self.streaming.includes_usage {
            let usage = Some(ChunkUsage::Total(self.usage));
            sse::push(events, &self.answer(vec![], usage));
        }
        sse::push_done(events);
    }
}

/// Completions call no tools.
fn end(reason: FinishReason) -> &'static str {
    match reason {
        FinishReason::ToolCalls => finish_reason(FinishReason::Stop),
        other => finish_reason(other),
    }
}

#[cfg(test)]
mod tests {
    use super::{
        super::test_support::{done, encoded, head, text},
        *,
    };

    #[test]
    fn a_prompt_that_is_part_of_the_answer_comes_first() {
        let streaming = Streaming { is_streamed: true, includes_usage: true };
        let encoder = CompletionEncoder::new(head(), streaming, None);
        let encoder = encoder.with_prompts(vec!["p".to_owned(), "q".to_owned()], 1);
        let events = [(1, text("a")), (1, done(FinishReason::Length))];
        let chunk = |choices: &str, usage: &str| {
            format!(
                "data: {{\"id\":\"id-1\",\"object\":\"text_completion\",\"created\":7,\
                 \"model\":\"m\",\"choices\":[{choices}],\"usage\":{usage}}}\n\n"
            )
        };
        let choice = |text: &str, reason: &str| {
            let start = format!("{{\"index\":1,\"text\":\"{text}\",\"logprobs\":null");
            chunk(&format!("{start},\"finish_reason\":{reason}}}"), "null")
        };
        let usage = "{\"prompt_tokens\":4,\"completion_tokens\":2,\"total_tokens\":6,\
             \"prompt_tokens_details\":{\"cached_tokens\":3},\
                 \"completion_tokens_details\":{\"reasoning_tokens\":1}}";
        let expected = [
            choice("q", "null"),
            choice("a", "null"),
            choice("", "\"length\""),
            chunk("", usage),
            "data: [DONE]\n\n".to_owned(),
        ];
        assert_eq!(encoded(encoder, &events), expected.concat());
    }
}
