//! The Responses API against the engine's own answers.

use serde_json::{Value, json};
use setun::{GenerateOptions, Message};

use crate::support::{Answer, MODEL, post, shared, shared_router, with};

const PATH: &str = "/v1/responses";

/// The data of named events, whose names are their types.
#[track_caller]
pub(crate) fn named_events(answer: &Answer) -> Vec<Value> {
    assert_eq!(answer.headers["content-type"], "text/event-stream");
    let event = |event: &str| {
        let (name, data) = event.split_once('\n').expect("two lines");
        let data = data.strip_prefix("data: ").expect("data");
        let data: Value = serde_json::from_str(data).expect("JSON");
        assert_eq!(format!("event: {}", data["type"].as_str().expect("a type")), name);
        data
    };
    answer.text.split_terminator("\n\n").map(event).collect()
}

/// Pieces of the events of a type, joined.
pub(crate) fn joined(events: &[Value], kind: &str, piece: &str) -> String {
    let events = events.iter().filter(|event| event["type"] == kind);
    events.map(|event| event.pointer(piece).and_then(Value::as_str).expect("a piece")).collect()
}

/// Options of a text that is drawn.
fn drawn() -> Value {
    json!({"model": MODEL, "max_output_tokens": 24, "temperature": 0.9, "seed": 11, "top_k": 50})
}

/// A response without what differs from one to the next.
fn without_ids(mut response: Value) -> Value {
    for field in ["id", "created_at"] {
        response.as_object_mut().expect("an object").shift_remove(field).expect(field);
    }
    for item in response["output"].as_array_mut().expect("items") {
        item["id"] = Value::Null;
    }
    response["usage"]["input_tokens_details"] = Value::Null;
    response
}

#[tokio::test]
async fn responses_are_the_engines_whole_and_streamed() {
    let router = shared_router();
    let input = json!([
        {"role": "user", "content": [{"type": "input_text", "text": "A cat sat."}]},
        {"type": "message", "role": "developer", "content": "Be brief."},
    ]);
    let more = json!({"input": input, "instructions": "You are a dog.", "store": true,
        "include": ["message.output_text.logprobs"], "top_logprobs": 2});
    let request = with(&drawn(), &more);
    let own = vec![Message::system("You are a dog.\n\nBe brief."), Message::user("A cat sat.")];
    let options = GenerateOptions::new().max_tokens(24).temperature(0.9).seed(11).top_k(50);
    let expected = shared().complete(own.clone(), options).expect("a text");
    let whole = post(&router, PATH, &request).await.json();
    let part = &whole["output"][0]["content"][0];
    assert_eq!(part["text"], *expected.text);
    assert_eq!(whole["usage"]["output_tokens"], expected.done.usage.completion_tokens);
    assert_eq!(whole["usage"]["input_tokens"], expected.done.usage.prompt_tokens);
    assert_eq!(part["logprobs"][0]["top_logprobs"].as_array().map(Vec::len), Some(2));

    let streamed = post(&router, PATH, &with(&request, &json!({"stream": true}))).await;
    let events = named_events(&streamed);
    let numbers: Vec<_> = events.iter().map(|event| event["sequence_number"].as_u64()).collect();
    assert_eq!(numbers, (0..numbers.len() as u64).map(Some).collect::<Vec<_>>());
    assert_eq!(joined(&events, "response.output_text.delta", "/delta"), expected.text);
    let last = events.last().expect("an event")["response"].clone();
    assert_eq!(without_ids(last), without_ids(whole));

    let count = post(&router, "/v1/responses/input_tokens", &request).await.json();
    let tokens = shared().tokenize_chat(&own, &GenerateOptions::new()).expect("tokens").len();
    assert_eq!(count, json!({"object": "response.input_tokens", "input_tokens": tokens}));
}

/// With the odd tools and items that Codex sends.
#[tokio::test]
async fn calls_go_round_as_items() {
    let router = shared_router();
    let city = json!({"city": {"enum": ["Oslo", "Rome"]}});
    let parameters = json!({"type": "object", "properties": city, "required": ["city"],
        "additionalProperties": false});
    let tools = json!([
        {"type": "web_search"},
        {"type": "namespace", "name": "n", "tools": []},
        {"type": "function", "name": "weather", "parameters": parameters, "strict": true},
        {"type": "function", "name": "other", "parameters": null},
    ]);
    let only = json!([{"type": "function", "name": "weather"}]);
    let choice = json!({"type": "allowed_tools", "mode": "required", "tools": only});
    let more = json!({"input": "How warm is it?", "tools": tools, "tool_choice": choice,
        "parallel_tool_calls": false, "max_output_tokens": 200, "temperature": 1});
    let request = with(&drawn(), &more);
    let whole = post(&router, PATH, &request).await.json();
    assert_eq!(whole["status"], "completed");
    assert_eq!(whole["tools"].as_array().map(Vec::len), Some(2), "functions");
    let call = &whole["output"][0];
    assert_eq!((&call["type"], &call["name"]), (&json!("function_call"), &json!("weather")));
    let arguments = call["arguments"].as_str().expect("a text");
    let value: Value = serde_json::from_str(arguments).expect("JSON");
    assert!(value["city"] == "Oslo" || value["city"] == "Rome", "{value}");

    let streamed = post(&router, PATH, &with(&request, &json!({"stream": true}))).await;
    let events = named_events(&streamed);
    let kind = "response.function_call_arguments.delta";
    assert_eq!(joined(&events, kind, "/delta"), arguments);
    let last = events.last().expect("an event")["response"].clone();
    assert_eq!(without_ids(last), without_ids(whole.clone()));

    let output = json!({"type": "function_call_output", "call_id": call["call_id"], "output": "3"});
    let input = json!([{"role": "user", "content": "How warm is it?"}, call, output]);
    let next = with(&request, &json!({"input": input, "tool_choice": "none"}));
    let next = post(&router, PATH, &next).await.json();
    assert_eq!(next["output"][0]["type"], "message");
}

#[tokio::test]
async fn formats_are_followed_and_state_is_refused() {
    let router = shared_router();
    let format = json!({"type": "json_schema", "name": "a", "schema": {"enum": ["yes", "no"]}});
    let request = with(&drawn(), &json!({"input": "Is it?", "text": {"format": format}}));
    let answer = post(&router, PATH, &request).await.json();
    let text = answer["output"][0]["content"][0]["text"].as_str().expect("a text");
    assert!(["\"yes\"", "\"no\""].contains(&text), "{text}");
    assert_eq!(answer["text"]["format"], format);
    for (more, param) in [
        (json!({"previous_response_id": "resp_1"}), "previous_response_id"),
        (json!({"conversation": "conv_1"}), "conversation"),
        (json!({"background": true}), "background"),
        (json!({"tool_choice": "required"}), "tool_choice"),
        (json!({"text": {"format": {"type": "json_schema"}}}), "text.format.schema"),
        (json!({"max_output_tokens": "1"}), "max_output_tokens"),
    ] {
        let refused = post(&router, PATH, &with(&request, &more)).await;
        assert_eq!(refused.error()["param"], param);
        assert_eq!(refused.status.as_u16(), 400);
    }
}
