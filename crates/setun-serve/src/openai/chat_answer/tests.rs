use super::{
    super::test_support::{done, encoded, head, reasoning, text},
    *,
};
use setun::FinishReason;

/// A chunk with these choices, and what comes behind them.
fn chunk(choices: &str, end: &str) -> String {
    format!(
        "data: {{\"id\":\"id-1\",\"object\":\"chat.completion.chunk\",\"created\":7,\"model\":\"m\",\
         \"choices\":[{choices}]{end}}}\n\n"
    )
}

fn choice(index: usize, delta: &str, finish_reason: &str) -> String {
    format!(
        "{{\"index\":{index},\"delta\":{{{delta}}},\"logprobs\":null,\
         \"finish_reason\":{finish_reason}}}"
    )
}

#[test]
fn text_is_deltas_between_a_role_and_a_reason() {
    let encoder = ChatEncoder::new(head(), Streaming::default(), None);
    let events = [text("a\n"), text(""), text("b"), done(FinishReason::Stop)];
    let expected = [
        chunk(&choice(0, "\"role\":\"assistant\",\"content\":\"\"", "null"), ""),
        chunk(&choice(0, "\"content\":\"a\\n\"", "null"), ""),
        chunk(&choice(0, "\"content\":\"b\"", "null"), ""),
        chunk(&choice(0, "", "\"stop\""), ""),
        "data: [DONE]\n\n".to_owned(),
    ];
    assert_eq!(encoded(encoder, &events.map(|event| (0, event))), expected.concat());
}

#[test]
fn reasoning_has_deltas_of_its_own() {
    let encoder = ChatEncoder::new(head(), Streaming::default(), None);
    let events = [reasoning("w\n"), reasoning(""), text("a"), done(FinishReason::Stop)];
    let thought = "\"reasoning_content\":\"w\\n\",\"reasoning\":\"w\\n\"";
    let expected = [
        chunk(&choice(0, "\"role\":\"assistant\",\"content\":\"\"", "null"), ""),
        chunk(&choice(0, thought, "null"), ""),
        chunk(&choice(0, "\"content\":\"a\"", "null"), ""),
        chunk(&choice(0, "", "\"stop\""), ""),
        "data: [DONE]\n\n".to_owned(),
    ];
    assert_eq!(encoded(encoder, &events.map(|event| (0, event))), expected.concat());
}

#[test]
fn usage_comes_last_and_counts_the_prompt_of_samples_once() {
    let streaming = Streaming { is_streamed: true, includes_usage: true };
    let encoder = ChatEncoder::new(head(), streaming, None);
    let events =
        [(1, text("b")), (1, done(FinishReason::Timeout)), (0, done(FinishReason::Aborted))];
    let pending = ",\"usage\":null";
    let expected = [
        chunk(&choice(1, "\"role\":\"assistant\",\"content\":\"\"", "null"), pending),
        chunk(&choice(1, "\"content\":\"b\"", "null"), pending),
        chunk(&choice(1, "", "\"length\""), pending),
        chunk(&choice(0, "\"role\":\"assistant\",\"content\":\"\"", "null"), pending),
        chunk(&choice(0, "", "\"stop\""), pending),
        chunk(
            "",
            ",\"usage\":{\"prompt_tokens\":4,\"completion_tokens\":4,\"total_tokens\":8,\
             \"prompt_tokens_details\":{\"cached_tokens\":3},\
             \"completion_tokens_details\":{\"reasoning_tokens\":2}}",
        ),
        "data: [DONE]\n\n".to_owned(),
    ];
    assert_eq!(encoded(encoder, &events), expected.concat());
}

#[test]
fn id_and_name_of_a_call_come_once() {
    let piece = |id: Option<&str>, arguments: &str| {
        let name = id.map(|_| "f".to_owned());
        let (id, arguments) = (id.map(str::to_owned), arguments.to_owned());
        let tool_calls = vec![ToolCallDelta { index: 0, id, name, arguments }];
        (0, Event::Text(TextDelta { tool_calls, ..TextDelta::default() }))
    };
    let encoder = ChatEncoder::new(head(), Streaming::default(), None);
    let events = [piece(Some("c1"), ""), piece(None, "{}"), (0, done(FinishReason::ToolCalls))];
    let expected = [
        chunk(&choice(0, "\"role\":\"assistant\",\"content\":\"\"", "null"), ""),
        chunk(
            &choice(
                0,
                "\"tool_calls\":[{\"index\":0,\"id\":\"c1\",\"type\":\"function\",\
                 \"function\":{\"name\":\"f\",\"arguments\":\"\"}}]",
                "null",
            ),
            "",
        ),
        chunk(
            &choice(
                0,
                "\"tool_calls\":[{\"index\":0,\"function\":{\"arguments\":\"{}\"}}]",
                "null",
            ),
            "",
        ),
        chunk(&choice(0, "", "\"tool_calls\""), ""),
        "data: [DONE]\n\n".to_owned(),
    ];
    assert_eq!(encoded(encoder, &events), expected.concat());
}
