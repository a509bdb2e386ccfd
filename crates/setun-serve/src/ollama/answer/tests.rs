use std::time::UNIX_EPOCH;

use setun::{Timings, ToolCallDelta};

use super::*;
use crate::openai::test_support::{done, encoded, reasoning, text};

/// What every line begins with.
const HEAD: &str = "{\"model\":\"m\",\"created_at\":\"1970-01-01T00:00:07.000000000Z\",\"done\":";

/// Tokens and times of [`ended`].
const COST: &str = "\"total_duration\":752000000,\"load_duration\":2000000,\
     \"prompt_eval_count\":4,\"prompt_eval_duration\":250000000,\
     \"eval_count\":2,\"eval_duration\":500000000";

fn encoder(shape: Shape) -> AnswerEncoder {
    let encoder = AnswerEncoder::new("m".to_owned(), shape, Duration::from_millis(2));
    AnswerEncoder { clock: || UNIX_EPOCH + Duration::from_secs(7), ..encoder }
}

/// The end of two tokens in three quarters of a second.
fn ended(finish_reason: FinishReason) -> Event {
    let Event::Done(mut done) = done(finish_reason) else { panic!("an end") };
    done.timings = Timings { load_seconds: 9.0, first_token_seconds: 0.25, tokens_per_second: 2.0 };
    Event::Done(done)
}

fn piece(index: usize, name: Option<&str>, arguments: &str) -> Event {
    let (id, name) = (name.map(|name| format!("id-{name}")), name.map(str::to_owned));
    let tool_calls = vec![ToolCallDelta { index, id, name, arguments: arguments.to_owned() }];
    Event::Text(TextDelta { tool_calls, ..TextDelta::default() })
}

#[test]
fn a_text_is_a_line_for_each_piece_and_one_for_its_end() {
    let events = [text("a\n"), text(""), text("b"), ended(FinishReason::Timeout)];
    let expected = [
        format!("{HEAD}false,\"response\":\"a\\n\"}}\n"),
        format!("{HEAD}false,\"response\":\"b\"}}\n"),
        format!("{HEAD}true,\"done_reason\":\"length\",{COST},\"response\":\"\"}}\n"),
    ];
    let events = events.map(|event| (0, event));
    assert_eq!(encoded(encoder(Shape::Generate), &events), expected.concat());
}

#[test]
fn reasoning_has_lines_of_its_own() {
    let events = || [reasoning("w"), reasoning(""), text("a")].map(|event| (0, event));
    let expected = [
        format!("{HEAD}false,\"response\":\"\",\"thinking\":\"w\"}}\n"),
        format!("{HEAD}false,\"response\":\"a\"}}\n"),
    ];
    assert_eq!(encoded(encoder(Shape::Generate), &events()), expected.concat());
    let message = "\"message\":{\"role\":\"assistant\",\"content\":";
    let expected = [
        format!("{HEAD}false,{message}\"\",\"thinking\":\"w\"}}}}\n"),
        format!("{HEAD}false,{message}\"a\"}}}}\n"),
    ];
    assert_eq!(encoded(encoder(Shape::Chat), &events()), expected.concat());
}

#[test]
fn a_call_is_written_whole_once_it_has_ended_and_never_half() {
    let events = [
        text("x"),
        piece(0, Some("f"), "{\"a\""),
        piece(0, None, ": 1 }"),
        piece(1, Some("g"), "{}"),
        piece(2, Some("h"), "{\"a"),
        ended(FinishReason::ToolCalls),
    ];
    let message =
        |more: &str| format!("\"message\":{{\"role\":\"assistant\",\"content\":{more}}}}}\n");
    let call = |index: usize, name: &str, arguments: &str| {
        let call = format!(
            "{{\"id\":\"id-{name}\",\"function\":{{\"index\":{index},\"name\":\"{name}\",\
             \"arguments\":{arguments}}}}}"
        );
        format!("{HEAD}false,{}", message(&format!("\"\",\"tool_calls\":[{call}]")))
    };
    let expected = [
        format!("{HEAD}false,{}", message("\"x\"")),
        call(0, "f", "{\"a\":1}"),
        call(1, "g", "{}"),
        format!("{HEAD}true,\"done_reason\":\"stop\",{COST},{}", message("\"\"")),
    ];
    let events = events.map(|event| (0, event));
    assert_eq!(encoded(encoder(Shape::Chat), &events), expected.concat());
}

#[test]
fn an_error_is_a_line_of_its_own() {
    let mut line = vec![];
    encoder(Shape::Chat).error(&ApiError::invalid("n", "expected 1"), &mut line);
    assert_eq!(line, b"{\"error\":\"n: expected 1\"}\n");
}
