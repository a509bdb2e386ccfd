//! Anthropic's API against the engine's own answers.

use axum::{
    body::Body,
    http::{Request, StatusCode},
};
use serde_json::{Value, json};
use setun::{GenerateOptions, Message};
use setun_serve::{ApiKeys, ServeOptions, router};

use crate::{
    responses::{joined, named_events},
    support::{MODEL, get, post, send, shared, shared_router, with},
};

const PATH: &str = "/v1/messages";

/// A request as Claude Code sends it.
fn request() -> Value {
    let cached = json!({"type": "ephemeral"});
    json!({
        "model": MODEL, "max_tokens": 24, "temperature": 0.9, "seed": 11, "top_k": 50,
        "system": [{"type": "text", "text": "You are a dog.", "cache_control": cached}],
        "messages": [{"role": "user", "content": [{"type": "text", "text": "A cat sat."}]}],
        "metadata": {"user_id": "a"}, "thinking": {"type": "enabled", "budget_tokens": 1024},
        "context_management": {"edits": []},
    })
}

#[tokio::test]
async fn messages_are_the_engines_whole_and_streamed() {
    let router = shared_router();
    let own = vec![Message::system("You are a dog."), Message::user("A cat sat.")];
    let options = GenerateOptions::new().max_tokens(24).temperature(0.9).seed(11).top_k(50);
    let expected = shared().complete(own.clone(), options.clone()).expect("a text");
    let prompt = expected.done.usage.prompt_tokens as u64;
    let whole = post(&router, "/v1/messages?beta=true", &request()).await.json();
    assert_eq!(whole["content"], json!([{"type": "text", "text": expected.text}]));
    let usage = |usage: &Value| {
        ["input_tokens", "cache_read_input_tokens"].map(|name| usage[name].as_u64().expect(name))
    };
    assert_eq!(usage(&whole["usage"]).iter().sum::<u64>(), prompt);

    let streamed = post(&router, PATH, &with(&request(), &json!({"stream": true}))).await;
    let events = named_events(&streamed);
    assert_eq!(events[0]["message"]["usage"]["input_tokens"], prompt);
    assert_eq!(joined(&events, "content_block_delta", "/delta/text"), expected.text);
    let [.., end, stop] = &events[..] else { panic!("{}", streamed.text) };
    assert_eq!(usage(&end["usage"]).iter().sum::<u64>(), prompt);
    assert_eq!(end["delta"]["stop_reason"], whole["stop_reason"]);
    assert_eq!(stop["type"], "message_stop");

    let word = expected.text.split_whitespace().nth(2).expect("a third word");
    let stopped = with(&request(), &json!({"stop_sequences": [word]}));
    let stopped = post(&router, PATH, &stopped).await.json();
    assert_eq!(stopped["stop_reason"], "stop_sequence");
    assert_eq!(stopped["stop_sequence"], word);

    let begun = Message::assistant("It was");
    let messages = json!([{"role": "user", "content": "A cat sat."}, begun]);
    let answer = with(&request(), &json!({"messages": messages}));
    let answer = post(&router, PATH, &answer).await.json();
    let own = [own, vec![begun]].concat();
    let expected = shared().complete(own.clone(), options.continue_final_message(true));
    assert_eq!(answer["content"][0]["text"], *expected.expect("a text").text);

    let count = post(&router, "/v1/messages/count_tokens", &request()).await.json();
    assert_eq!(count, json!({"input_tokens": prompt}));
}

#[tokio::test]
async fn calls_go_round_as_blocks() {
    let router = shared_router();
    let city = json!({"city": {"enum": ["Oslo", "Rome"]}});
    let schema = json!({"$schema": "http://json-schema.org/draft-07/schema#", "type": "object",
        "properties": city, "required": ["city"], "additionalProperties": false});
    let tools = json!([
        {"type": "web_search_20250305", "name": "web_search", "max_uses": 8},
        {"name": "weather", "description": "b", "input_schema": schema},
    ]);
    let choice = json!({"type": "any", "disable_parallel_tool_use": true});
    let more = json!({"tools": tools, "tool_choice": choice, "max_tokens": 200});
    let request = with(&request(), &more);
    let whole = post(&router, PATH, &request).await.json();
    assert_eq!(whole["stop_reason"], "tool_use");
    let call = &whole["content"][0];
    assert_eq!((&call["type"], &call["name"]), (&json!("tool_use"), &json!("weather")));
    let city = &call["input"]["city"];
    assert!(city == "Oslo" || city == "Rome", "{call}");

    let streamed = post(&router, PATH, &with(&request, &json!({"stream": true}))).await;
    let events = named_events(&streamed);
    let input = joined(&events, "content_block_delta", "/delta/partial_json");
    assert_eq!(serde_json::from_str::<Value>(&input).expect("JSON"), call["input"]);
    let start = events.iter().find(|event| event["type"] == "content_block_start");
    assert_eq!(start.expect("a block")["content_block"]["id"], call["id"]);

    let result = json!({"type": "tool_result", "tool_use_id": call["id"], "content": "3"});
    let messages = json!([
        {"role": "user", "content": "How warm is it?"},
        {"role": "assistant", "content": [call]},
        {"role": "user", "content": [result]},
    ]);
    let next = with(&request, &json!({"messages": messages, "tool_choice": {"type": "none"}}));
    let next = post(&router, PATH, &next).await.json();
    assert_eq!(next["content"][0]["type"], "text");
}

#[tokio::test]
async fn errors_have_the_shape_of_the_api() {
    let routes = shared_router();
    let without = |field: &str| {
        let mut request = request();
        request.as_object_mut().expect("an object").shift_remove(field).expect(field);
        request
    };
    for (answer, status, kind) in [
        (post(&routes, PATH, &without("max_tokens")).await, 400, "invalid_request_error"),
        (post(&routes, PATH, &without("messages")).await, 400, "invalid_request_error"),
        (post(&routes, PATH, &json!([])).await, 400, "invalid_request_error"),
        (
            post(&routes, PATH, &with(&request(), &json!({"model": "b"}))).await,
            404,
            "not_found_error",
        ),
        (get(&routes, PATH).await, 405, "invalid_request_error"),
        (get(&routes, "/v1/messages/batches").await, 404, "not_found_error"),
    ] {
        let error: Value = serde_json::from_str(&answer.text).expect("JSON");
        assert_eq!((answer.status.as_u16(), &error["error"]["type"]), (status, &json!(kind)));
        assert_eq!(error["type"], "error");
        assert_eq!(answer.headers["request-id"], error["request_id"].as_str().expect("an id"));
    }

    let keys = ApiKeys::parse("first").expect("a key");
    let locked = router(shared(), ServeOptions::new().api_keys(keys));
    let status = async |key: &str| {
        let request = Request::post("/v1/messages/count_tokens").header("x-api-key", key);
        let body = Body::from(request_text());
        send(&locked, request.body(body).expect("a request")).await.status
    };
    assert_eq!(status("first").await, StatusCode::OK);
    let refused = post(&locked, PATH, &request()).await;
    assert!(refused.text.contains("\"authentication_error\""), "{}", refused.text);
    assert_eq!(status("second").await, StatusCode::UNAUTHORIZED);
}

fn request_text() -> String {
    request().to_string()
}
