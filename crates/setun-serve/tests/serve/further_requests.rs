//! Further fields, routes and APIs of what the other files of requests test once.

use axum::{body::Body, http::Request};
use serde_json::{Value, json};

use crate::support::{Answer, MODEL, get, post, send, shared_router, with};

const CHAT: &str = "/v1/chat/completions";
const COMPLETIONS: &str = "/v1/completions";
const RESPONSES: &str = "/v1/responses";
const MESSAGES: &str = "/v1/messages";
const OLLAMA: &str = "/api/chat";

fn hi() -> Value {
    json!([{"role": "user", "content": "hi"}])
}

/// A request of each API for a text of two tokens, written as 2.0 with the other numbers.
fn with_fractions() -> [(&'static str, &'static str); 9] {
    [
        (
            CHAT,
            r#"{"messages": [{"role": "user", "content": "hi"}], "max_completion_tokens": 2.0, "seed": 1.0,
            "logprobs": true, "top_logprobs": 2.0, "n": 2.0, "min_tokens": 1.0}"#,
        ),
        (
            RESPONSES,
            r#"{"input": [{"role": "user", "content": "hi"}], "max_output_tokens": 2.0, "seed": 1.0}"#,
        ),
        (
            MESSAGES,
            r#"{"messages": [{"role": "user", "content": "hi"}], "max_tokens": 2.0, "top_k": 3.0, "seed": 1.0}"#,
        ),
        (
            OLLAMA,
            r#"{"messages": [{"role": "user", "content": "hi"}], "stream": false, "keep_alive": 300.0,
            "options": {"num_predict": 2.0, "seed": 1.0, "top_k": 3.0, "num_ctx": 512.0, "repeat_last_n": 8.0}}"#,
        ),
        (COMPLETIONS, r#"{"prompt": [[5.0], [6.0]], "max_tokens": 2.0, "best_of": 1.0}"#),
        ("/v1/embeddings", r#"{"input": [5.0, 6.0]}"#),
        ("/detokenize", r#"{"tokens": [5.0, 6.0]}"#),
        ("/score", r#"{"prompt": [5.0], "continuations": ["b"]}"#),
        ("/api/embed", r#"{"input": ["a"], "options": {"num_ctx": 512.0}}"#),
    ]
}

#[tokio::test]
async fn integers_with_fractions_are_taken_on_further_routes() {
    let router = shared_router();
    for (path, text) in with_fractions() {
        let body: Value = serde_json::from_str(text).expect("JSON");
        let whole: Value = serde_json::from_str(&text.replace(".0", "")).expect("JSON");
        let (found, expected) =
            (post(&router, path, &body).await, post(&router, path, &whole).await);
        assert_eq!(found.status, expected.status, "{path}: {} {}", found.text, expected.text);
        assert!(found.status.is_success(), "{path}: {}", found.text);
        for place in ["/choices", "/output/0/content", "/content", "/message/content", "/data"] {
            let of = |answer: &Answer| answer.json().pointer(place).cloned();
            assert_eq!(of(&found), of(&expected), "{path}");
        }
    }
    // Keywords of schemas are integers, too.
    let schema = r#"{"type": "array", "items": {"const": 7}, "minItems": 2.0, "maxItems": 2.0}"#;
    let schema: Value = serde_json::from_str(schema).expect("JSON");
    let body = json!({"prompt": "a", "max_tokens": 40, "guided_json": schema});
    let answer = post(&router, COMPLETIONS, &body).await.json();
    let text = answer["choices"][0]["text"].as_str().expect("a text");
    assert_eq!(serde_json::from_str::<Value>(text).expect("JSON"), json!([7, 7]));
}

#[tokio::test]
async fn the_tag_latest_is_taken_on_further_routes() {
    let router = shared_router();
    let name = format!("{MODEL}:latest");
    for (path, body) in [
        ("/api/generate", json!({"prompt": "a", "stream": false, "options": {"num_predict": 1}})),
        (OLLAMA, json!({"messages": hi(), "stream": false, "options": {"num_predict": 1}})),
        ("/api/embed", json!({"input": "a"})),
        ("/api/embeddings", json!({"prompt": "a"})),
        ("/detokenize", json!({"tokens": [5]})),
        ("/v1/responses/input_tokens", json!({"input": "a"})),
        ("/v1/messages/count_tokens", json!({"messages": hi()})),
    ] {
        let found = post(&router, path, &with(&body, &json!({"model": name}))).await;
        assert!(found.status.is_success(), "{path}: {}", found.text);
    }
    let info = get(&router, &format!("/tokenizer_info?model={name}")).await;
    assert!(info.status.is_success(), "{}", info.text);
    let other = json!({"model": format!("{MODEL}:4b"), "prompt": "a"});
    assert_eq!(post(&router, COMPLETIONS, &other).await.status.as_u16(), 404);
}

#[tokio::test]
async fn compressed_bodies_are_read_on_every_route() {
    /// `{"prompt":"Go","max_tokens":2,"seed":1}`, compressed by Node's `zlib`.
    const BROTLI: &[u8] = b"\x0b\x13\x80{\"prompt\":\"Go\",\"max_tokens\":2,\"seed\":1}\x03";
    let router = shared_router();
    let ask = |path: &'static str, encoding: &'static str, body: Vec<u8>| {
        let request = Request::post(path).header("content-encoding", encoding);
        let (router, request) =
            (router.clone(), request.body(Body::from(body)).expect("a request"));
        async move { send(&router, request).await }
    };
    let zstd = |value: &Value| {
        let bytes = value.to_string().into_bytes();
        let level = ruzstd::encoding::CompressionLevel::Fastest;
        ruzstd::encoding::compress_to_vec(&bytes[..], level)
    };
    let body = json!({"prompt": "Go", "max_tokens": 2, "seed": 1});
    let plain = post(&router, COMPLETIONS, &body).await.json()["choices"].clone();
    for encoding in ["br", "BR", "identity, br"] {
        let answer = ask(COMPLETIONS, encoding, BROTLI.to_vec()).await.json();
        assert_eq!(answer["choices"], plain, "{encoding}");
    }
    for (path, body) in [
        (CHAT, json!({"messages": hi(), "max_tokens": 1})),
        (RESPONSES, json!({"input": "hi", "max_output_tokens": 1})),
        (MESSAGES, json!({"messages": hi(), "max_tokens": 1})),
        (OLLAMA, json!({"messages": hi(), "stream": false, "options": {"num_predict": 1}})),
        ("/tokenize", json!({"prompt": "a"})),
        ("/api/show", json!({"model": MODEL})),
    ] {
        let answer = ask(path, "zstd", zstd(&body)).await;
        assert!(answer.status.is_success(), "{path}: {}", answer.text);
        assert_eq!(ask(path, "gzip", b"{}".to_vec()).await.status.as_u16(), 400, "{path}");
        assert_eq!(ask(path, "compress", b"{}".to_vec()).await.status.as_u16(), 415, "{path}");
    }
    let twice = ask(COMPLETIONS, "gzip, zstd", vec![]).await;
    assert_eq!(twice.status.as_u16(), 415);
}

/// A byte order mark before a body, which some programs write.
#[tokio::test]
async fn a_byte_order_mark_before_a_body_is_passed_over() {
    let router = shared_router();
    for (path, body) in [
        (CHAT, json!({"messages": hi(), "max_tokens": 1})),
        (COMPLETIONS, json!({"prompt": "hi", "max_tokens": 1})),
        (RESPONSES, json!({"input": "hi", "max_output_tokens": 1})),
        (MESSAGES, json!({"messages": hi(), "max_tokens": 1})),
        (OLLAMA, json!({"messages": hi(), "stream": false, "options": {"num_predict": 1}})),
        ("/api/show", json!({"model": MODEL})),
        ("/tokenize", json!({"prompt": "a"})),
    ] {
        let request = Request::post(path).header("content-type", "application/json");
        let request = request.body(Body::from(format!("\u{feff}{body}"))).expect("a request");
        let answer = send(&router, request).await;
        assert!(answer.status.is_success(), "{path}: {}", answer.text);
    }
}

/// Line breaks in arguments of calls, in log-probabilities and in errors.
#[tokio::test]
async fn further_lines_have_no_breaks_but_their_own() {
    const WORD: &str = "a\u{2028}b\u{2029}c\u{85}d";
    let router = shared_router();
    let is_break = |letter: char| matches!(letter, '\u{85}' | '\u{2028}' | '\u{2029}');
    let parameters = json!({"type": "object", "properties": {"word": {"const": WORD}},
        "required": ["word"], "additionalProperties": false});
    let function = json!({"name": "f", "parameters": parameters});
    let nested = json!([{"type": "function", "function": function}]);
    let flat = json!([with(&function, &json!({"type": "function"}))]);
    let tool = json!([{"name": "f", "input_schema": parameters}]);
    for (path, body) in [
        (CHAT, json!({"messages": hi(), "tools": nested, "max_tokens": 120})),
        (RESPONSES, json!({"input": hi(), "tools": flat, "max_output_tokens": 120})),
        (MESSAGES, json!({"messages": hi(), "tools": tool, "max_tokens": 120})),
        (OLLAMA, json!({"messages": hi(), "tools": nested, "options": {"num_predict": 120}})),
    ] {
        let choice = if path == MESSAGES { json!({"type": "any"}) } else { json!("required") };
        let more = json!({"stream": true, "tool_choice": choice});
        let answer = post(&router, path, &with(&body, &more)).await;
        assert!(answer.status.is_success(), "{path}: {}", answer.text);
        assert!(!answer.text.contains(is_break), "{path}: {}", answer.text);
        assert!(answer.text.contains("2028"), "{path}: {}", answer.text);
    }
    let body = json!({"prompt": "a", "max_tokens": 60, "guided_choice": [WORD], "logprobs": 1,
        "stream": true});
    let answer = post(&router, COMPLETIONS, &body).await;
    assert!(answer.text.contains("top_logprobs") && !answer.text.contains(is_break));
    let refused = json!({"model": WORD, "messages": hi(), "stream": true});
    for path in [CHAT, RESPONSES, MESSAGES, OLLAMA] {
        let answer = post(&router, path, &refused).await;
        assert!(!answer.status.is_success());
        assert!(!answer.text.contains(is_break), "{path}: {}", answer.text);
    }
}

/// Words of other servers beside tools, in streams, and where a text begins with a byte order mark.
#[tokio::test]
async fn further_formats_go_beside_tools() {
    let router = shared_router();
    let function = json!({"name": "f", "parameters": {"type": "object", "properties": {},
        "additionalProperties": false}});
    let tools = json!([{"type": "function", "function": function}]);
    let body = json!({"messages": hi(), "tools": tools, "tool_choice": "none", "max_tokens": 60});
    for format in [
        json!({"guided_json": {"const": 7}}),
        json!({"guided_json": "\u{feff}{\"const\": 7}"}),
        json!({"structured_outputs": {"json": {"const": 7}}}),
        json!({"grammar": "root ::= \"7\""}),
        json!({"response_format": {"type": "json_object", "schema": {"const": 7}}}),
    ] {
        let answer = post(&router, CHAT, &with(&body, &format)).await.json();
        assert_eq!(answer["choices"][0]["message"]["content"], "7", "{format} {answer}");
        let call = with(&with(&body, &format), &json!({"tool_choice": "required"}));
        let answer = post(&router, CHAT, &call).await.json();
        let name = &answer["choices"][0]["message"]["tool_calls"][0]["function"]["name"];
        assert_eq!(name, "f", "{format} {answer}");
    }
}

/// Calls without arguments in further spellings, and fields of messages that are null.
#[tokio::test]
async fn further_calls_without_arguments_and_nulls_are_taken_back() {
    let router = shared_router();
    let count = |call: Value, more: Value| {
        let messages = json!([{"role": "user", "content": "hi"},
            with(&json!({"role": "assistant", "tool_calls": [call]}), &more),
            {"role": "tool", "content": "12:00", "tool_call_id": "c1"}]);
        let router = router.clone();
        async move { post(&router, "/tokenize", &json!({"messages": messages})).await }
    };
    let call = |arguments: Value| json!({"id": "c1", "type": "function", "function": {"name": "now", "arguments": arguments}});
    let expected = count(call(json!("{}")), json!({})).await.json()["tokens"].clone();
    for (call, more) in [
        (call(json!(" \n")), json!({"content": null})),
        (call(json!({})), json!({"content": null, "refusal": null, "audio": null})),
        (with(&call(json!("")), &json!({"index": null})), json!({"function_call": null})),
        (call(json!("{ }")), json!({"name": null})),
    ] {
        let answer = count(call.clone(), more.clone()).await;
        assert!(answer.status.is_success(), "{call} {more}: {}", answer.text);
        assert_eq!(answer.json()["tokens"], expected, "{call} {more}");
    }
    let call = json!({"function": {"name": "now", "arguments": ""}});
    let body = json!({"stream": false, "options": {"num_predict": 1}, "messages": [
        {"role": "user", "content": "hi", "images": null},
        {"role": "assistant", "content": "", "thinking": null, "tool_calls": [call]},
        {"role": "tool", "content": "12:00", "tool_name": null}]});
    post(&router, OLLAMA, &body).await.json();
    let body = json!({"prompt": "a", "stream": false, "images": null, "suffix": null,
        "format": null, "context": null, "options": null});
    post(&router, "/api/generate", &body).await.json();
}
