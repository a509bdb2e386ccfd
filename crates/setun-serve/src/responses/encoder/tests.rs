use serde_json::json;
use setun::{FinishReason, ToolCallDelta};

use super::*;
use crate::{
    fields::Fields,
    openai::test_support::{done, encoded, head, reasoning, text},
    responses::request::ResponseRequest,
};

/// An encoder for a request with every default.
fn encoder() -> ResponseEncoder {
    let body = json!({"input": "a", "instructions": "b"}).to_string();
    let mut fields = Fields::read(body.as_bytes()).expect("an object");
    let request = ResponseRequest::read(&mut fields, None).expect("a request");
    ResponseEncoder::new(head(), request.settings, None)
}

fn call(id: Option<&str>, arguments: &str) -> Event {
    let name = id.map(|_| "f".to_owned());
    let (id, arguments) = (id.map(str::to_owned), arguments.to_owned());
    let tool_calls = vec![ToolCallDelta { index: 0, id, name, arguments }];
    Event::Text(TextDelta { tool_calls, ..TextDelta::default() })
}

/// Events with their numbers, without those that have the whole response.
fn golden(events: &[(&str, &str)]) -> String {
    let numbered = (2..).zip(events).map(|(number, (kind, data))| {
        format!(
            "event: response.{kind}\ndata: {{\"type\":\"response.{kind}\",\
             \"sequence_number\":{number},{data}}}\n\n"
        )
    });
    numbered.collect()
}

/// The response of an event.
fn response(
    number: usize,
    kind: &str,
    status: &str,
    details: &str,
    output: &str,
    usage: &str,
) -> String {
    format!(
        "event: response.{kind}\ndata: {{\"type\":\"response.{kind}\",\"sequence_number\":{number},\
         \"response\":{{\"id\":\"id-1\",\"object\":\"response\",\"created_at\":7,\
         \"status\":\"{status}\",\"background\":false,{details},\"instructions\":\"b\",\
         \"max_output_tokens\":null,\"metadata\":{{}},\"model\":\"m\",\"output\":[{output}],\
         \"parallel_tool_calls\":true,\"previous_response_id\":null,\
         \"reasoning\":{{\"effort\":null,\"summary\":null}},\"store\":false,\"temperature\":null,\
         \"text\":{{\"format\":{{\"type\":\"text\"}}}},\"tool_choice\":\"auto\",\"tools\":[],\
         \"top_logprobs\":0,\"top_p\":null,\"truncation\":\"disabled\",\"usage\":{usage}}}}}\n\n"
    )
}

const NO_DETAILS: &str = "\"error\":null,\"incomplete_details\":null";
const USAGE: &str = "{\"input_tokens\":4,\"input_tokens_details\":{\"cached_tokens\":3,\
     \"cache_write_tokens\":0},\"output_tokens\":2,\
     \"output_tokens_details\":{\"reasoning_tokens\":1},\"total_tokens\":6}";

fn begun() -> String {
    let begun = |number, kind| response(number, kind, "in_progress", NO_DETAILS, "", "null");
    begun(0, "created") + &begun(1, "in_progress")
}

fn part(text: &str) -> String {
    format!("{{\"type\":\"output_text\",\"text\":\"{text}\",\"annotations\":[],\"logprobs\":[]}}")
}

fn message(status: &str, content: &str) -> String {
    format!(
        "{{\"type\":\"message\",\"id\":\"msg_id-1_0\",\"status\":\"{status}\",\
         \"role\":\"assistant\",\"content\":[{content}]}}"
    )
}

const OF_TEXT: &str = "\"item_id\":\"msg_id-1_0\",\"output_index\":0,\"content_index\":0";

#[test]
fn a_text_is_deltas_of_a_part_of_an_item() {
    let events = [text("a\n"), text(""), text("b"), done(FinishReason::Stop)];
    let delta = |text: &str| format!("{OF_TEXT},\"delta\":\"{text}\",\"logprobs\":[]");
    let of_part = |text: &str| format!("{OF_TEXT},\"part\":{}", part(text));
    let item = |item: &str| format!("\"output_index\":0,\"item\":{item}");
    let whole = message("completed", &part("a\\nb"));
    let steps = golden(&[
        ("output_item.added", &item(&message("in_progress", ""))),
        ("content_part.added", &of_part("")),
        ("output_text.delta", &delta("a\\n")),
        ("output_text.delta", &delta("b")),
        ("output_text.done", &format!("{OF_TEXT},\"text\":\"a\\nb\",\"logprobs\":[]")),
        ("content_part.done", &of_part("a\\nb")),
        ("output_item.done", &item(&whole)),
    ]);
    let end = response(9, "completed", "completed", NO_DETAILS, &whole, USAGE);
    let expected = begun() + &steps + &end;
    assert_eq!(encoded(encoder(), &events.map(|event| (0, event))), expected);
}

#[test]
fn reasoning_is_an_item_of_its_own() {
    let events = [reasoning("w"), reasoning("hy"), done(FinishReason::Length)];
    let item = |status: &str, content: &str| {
        format!(
            "{{\"type\":\"reasoning\",\"id\":\"rs_id-1_0\",\"status\":\"{status}\",\
             \"summary\":[],\"content\":[{content}]}}"
        )
    };
    let of_item = |item: &str| format!("\"output_index\":0,\"item\":{item}");
    let of_text = OF_TEXT.replace("msg_", "rs_");
    let part = |text: &str| format!("{{\"type\":\"reasoning_text\",\"text\":\"{text}\"}}");
    let of_part = |text: &str| format!("{of_text},\"part\":{}", part(text));
    let whole = item("incomplete", &part("why"));
    let steps = golden(&[
        ("output_item.added", &of_item(&item("in_progress", ""))),
        ("content_part.added", &of_part("")),
        ("reasoning_text.delta", &format!("{of_text},\"delta\":\"w\"")),
        ("reasoning_text.delta", &format!("{of_text},\"delta\":\"hy\"")),
        ("reasoning_text.done", &format!("{of_text},\"text\":\"why\"")),
        ("content_part.done", &of_part("why")),
        ("output_item.done", &of_item(&whole)),
    ]);
    let details = "\"error\":null,\"incomplete_details\":{\"reason\":\"max_output_tokens\"}";
    let end = response(9, "incomplete", "incomplete", details, &whole, USAGE);
    let expected = begun() + &steps + &end;
    assert_eq!(encoded(encoder(), &events.map(|event| (0, event))), expected);
}

#[test]
fn a_call_is_an_item_with_arguments() {
    let events = [call(Some("c1"), ""), call(None, "{}"), done(FinishReason::Length)];
    let item = |status: &str, arguments: &str| {
        format!(
            "{{\"type\":\"function_call\",\"id\":\"fc_id-1_0\",\"status\":\"{status}\",\
             \"call_id\":\"c1\",\"name\":\"f\",\"arguments\":\"{arguments}\"}}"
        )
    };
    let of_item = |status: &str, arguments| {
        format!("\"output_index\":0,\"item\":{}", item(status, arguments))
    };
    let of_call = "\"item_id\":\"fc_id-1_0\",\"output_index\":0";
    let steps = golden(&[
        ("output_item.added", &of_item("in_progress", "")),
        ("function_call_arguments.delta", &format!("{of_call},\"delta\":\"{{}}\"")),
        ("function_call_arguments.done", &format!("{of_call},\"arguments\":\"{{}}\"")),
        ("output_item.done", &of_item("incomplete", "{}")),
    ]);
    let details = "\"error\":null,\"incomplete_details\":{\"reason\":\"max_output_tokens\"}";
    let whole = item("incomplete", "{}");
    let end = response(6, "incomplete", "incomplete", details, &whole, USAGE);
    let expected = begun() + &steps + &end;
    assert_eq!(encoded(encoder(), &events.map(|event| (0, event))), expected);
}

#[test]
fn an_error_ends_the_response() {
    let mut bytes = vec![];
    encoder().error(&ApiError::internal("x"), &mut bytes);
    let details =
        "\"error\":{\"code\":\"server_error\",\"message\":\"x\"},\"incomplete_details\":null";
    let expected = begun() + &response(2, "failed", "failed", details, "", "null");
    assert_eq!(String::from_utf8(bytes).expect("UTF-8"), expected);
}
