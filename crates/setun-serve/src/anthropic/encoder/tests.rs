use axum::http::HeaderValue;
use setun::{FinishReason, PromptProgress, ToolCallDelta};

use super::*;
use crate::openai::test_support::{done, encoded, head, reasoning, text};

fn encoder() -> MessageEncoder {
    MessageEncoder::new(head(), Some(RequestId(HeaderValue::from_static("req-1"))))
}

fn call(index: usize, id: Option<&str>, arguments: &str) -> Event {
    let name = id.map(|_| "f".to_owned());
    let (id, arguments) = (id.map(str::to_owned), arguments.to_owned());
    let tool_calls = vec![ToolCallDelta { index, id, name, arguments }];
    Event::Text(TextDelta { tool_calls, ..TextDelta::default() })
}

/// Events with the rest of their data.
fn golden(events: &[(&str, &str)]) -> String {
    let event = |(kind, data): &(&str, &str)| {
        format!("event: {kind}\ndata: {{\"type\":\"{kind}\"{data}}}\n\n")
    };
    events.iter().map(event).collect()
}

fn usage(input: usize, cached: usize, output: usize) -> String {
    format!(
        "\"usage\":{{\"input_tokens\":{input},\"cache_creation_input_tokens\":0,\
         \"cache_read_input_tokens\":{cached},\"output_tokens\":{output}}}"
    )
}

fn start(input: usize) -> String {
    let usage = usage(input, 0, 0);
    format!(
        ",\"message\":{{\"id\":\"id-1\",\"type\":\"message\",\"role\":\"assistant\",\
         \"model\":\"m\",\"content\":[],\"stop_reason\":null,\"stop_sequence\":null,{usage}}}"
    )
}

fn end(reason: &str, sequence: &str) -> String {
    let delta = format!("{{\"stop_reason\":\"{reason}\",\"stop_sequence\":{sequence}}}");
    format!(",\"delta\":{delta},{}", usage(1, 3, 2))
}

#[test]
fn a_text_and_calls_are_blocks() {
    let progress = PromptProgress { computed_tokens: 4, prompt_tokens: 4 };
    let events = [
        Event::Progress(progress),
        text("a\n"),
        text(""),
        call(0, Some("c1"), ""),
        call(0, None, "{}"),
        call(1, Some("c2"), "{"),
        call(1, None, "}"),
        done(FinishReason::ToolCalls),
    ];
    let block = |index: usize, block: &str| format!(",\"index\":{index},\"content_block\":{block}");
    let delta = |index: usize, kind: &str, piece: &str| {
        format!(",\"index\":{index},\"delta\":{{\"type\":\"{kind}\",{piece}}}")
    };
    let json = |index, piece: &str| {
        delta(index, "input_json_delta", &format!("\"partial_json\":\"{piece}\""))
    };
    let call = |index, id: &str| {
        let tool = "\"type\":\"tool_use\"";
        block(index, &format!("{{{tool},\"id\":\"{id}\",\"name\":\"f\",\"input\":{{}}}}"))
    };
    let expected = golden(&[
        ("message_start", &start(4)),
        ("ping", ""),
        ("content_block_start", &block(0, "{\"type\":\"text\",\"text\":\"\"}")),
        ("content_block_delta", &delta(0, "text_delta", "\"text\":\"a\\n\"")),
        ("content_block_stop", ",\"index\":0"),
        ("content_block_start", &call(1, "c1")),
        ("content_block_delta", &json(1, "{}")),
        ("content_block_stop", ",\"index\":1"),
        ("content_block_start", &call(2, "c2")),
        ("content_block_delta", &json(2, "{")),
        ("content_block_delta", &json(2, "}")),
        ("content_block_stop", ",\"index\":2"),
        ("message_delta", &end("tool_use", "null")),
        ("message_stop", ""),
    ]);
    assert_eq!(encoded(encoder(), &events.map(|event| (0, event))), expected);
}

#[test]
fn reasoning_is_a_block_with_an_empty_signature() {
    let events = [reasoning("w"), reasoning(""), text("a"), done(FinishReason::Stop)];
    let delta = |index: usize, kind: &str, piece: &str| {
        format!(",\"index\":{index},\"delta\":{{\"type\":\"{kind}\",{piece}}}")
    };
    let block = |index: usize, block: &str| format!(",\"index\":{index},\"content_block\":{block}");
    let thinking = "{\"type\":\"thinking\",\"thinking\":\"\",\"signature\":\"\"}";
    let expected = golden(&[
        ("message_start", &start(0)),
        ("content_block_start", &block(0, thinking)),
        ("content_block_delta", &delta(0, "thinking_delta", "\"thinking\":\"w\"")),
        ("content_block_delta", &delta(0, "signature_delta", "\"signature\":\"\"")),
        ("content_block_stop", ",\"index\":0"),
        ("content_block_start", &block(1, "{\"type\":\"text\",\"text\":\"\"}")),
        ("content_block_delta", &delta(1, "text_delta", "\"text\":\"a\"")),
        ("content_block_stop", ",\"index\":1"),
        ("message_delta", &end("end_turn", "null")),
        ("message_stop", ""),
    ]);
    assert_eq!(encoded(encoder(), &events.map(|event| (0, event))), expected);
}

#[test]
fn an_empty_answer_has_no_block_and_the_string_that_ended_it() {
    let Event::Done(done) = done(FinishReason::Stop) else { return };
    let done = Event::Done(Done { stop: Some("x".to_owned()), ..done });
    let expected = golden(&[
        ("message_start", &start(0)),
        ("message_delta", &end("stop_sequence", "\"x\"")),
        ("message_stop", ""),
    ]);
    assert_eq!(encoded(encoder(), &[(0, done)]), expected);
}

#[test]
fn an_error_has_the_shape_of_the_api() {
    let mut bytes = vec![];
    encoder().error(&ApiError::internal("x"), &mut bytes);
    let error = "{\"type\":\"api_error\",\"message\":\"x\"}";
    let expected = golden(&[("error", &format!(",\"error\":{error},\"request_id\":\"req-1\""))]);
    assert_eq!(String::from_utf8(bytes).expect("UTF-8"), expected);
}
