//! Formats and tools.

use serde_json::{Value, json};

use crate::support::{post, shared_router, with};

const PATH: &str = "/v1/chat/completions";

fn request() -> Value {
    let messages = json!([{"role": "user", "content": "How warm is it in Oslo?"}]);
    json!({"messages": messages, "temperature": 1, "seed": 3, "max_tokens": 200})
}

#[tokio::test]
async fn a_format_is_followed() {
    let router = shared_router();
    let schema = json!({
        "type": "object",
        "properties": {"city": {"enum": ["Oslo", "Rome"]}, "warm": {"type": "boolean"}},
        "required": ["city", "warm"],
        "additionalProperties": false,
    });
    let format = json!({"type": "json_schema", "json_schema": {"name": "a", "schema": schema}});
    let answer = post(&router, PATH, &with(&request(), &json!({"response_format": format}))).await;
    let answer = answer.json();
    assert_eq!(answer["choices"][0]["finish_reason"], "stop");
    let content = answer["choices"][0]["message"]["content"].as_str().expect("a text");
    let value: Value = serde_json::from_str(content).expect("JSON");
    assert!(value["warm"].is_boolean() && value["city"].is_string(), "{value}");
    let choices = json!({"type": "choice", "choices": ["yes", "no"]});
    let answer = post(&router, PATH, &with(&request(), &json!({"response_format": choices}))).await;
    let content = answer.json()["choices"][0]["message"]["content"].clone();
    assert!(content == "yes" || content == "no", "{content}");
}

/// Objects of any kind, and grammars of each syntax.
#[tokio::test]
async fn objects_and_grammars_are_followed() {
    let router = shared_router();
    let grammar = |syntax: &str, definition: &str| json!({"type": "grammar", "syntax": syntax, "definition": definition});
    let formats = [
        (json!({"type": "json_object"}), "{"),
        (grammar("regex", "to (Oslo|Rome)"), "to "),
        (grammar("lark", "start: \"to \" (\"Oslo\" | \"Rome\")"), "to "),
        (grammar("gbnf", "root ::= \"to \" (\"Oslo\" | \"Rome\")"), "to "),
    ];
    for (format, begin) in formats {
        let is_right = |text: &str| match begin {
            "{" => serde_json::from_str::<Value>(text).is_ok_and(|value| value.is_object()),
            _ => matches!(text, "to Oslo" | "to Rome"),
        };
        for seed in 0..8 {
            let more = json!({"response_format": format, "seed": seed, "max_tokens": 400});
            let answer = post(&router, PATH, &with(&request(), &more)).await.json();
            let choice = &answer["choices"][0];
            let text = choice["message"]["content"].as_str().expect("a text");
            assert_eq!(choice["finish_reason"], "stop", "{format}: {text}");
            assert!(is_right(text) && text.starts_with(begin), "{format}: {text}");
        }
    }
}

#[tokio::test]
async fn streamed_pieces_of_a_call_join_to_the_whole() {
    let router = shared_router();
    let parameters = json!({
        "type": "object",
        "properties": {"city": {"enum": ["Oslo", "Rome"]}},
        "required": ["city"],
        "additionalProperties": false,
    });
    let function = json!({"name": "weather", "parameters": parameters, "strict": true});
    let tools = json!([{"type": "function", "function": function}]);
    let more = json!({"tools": tools, "tool_choice": "required", "parallel_tool_calls": false});
    let request = with(&request(), &more);
    let whole = post(&router, PATH, &request).await.json();
    let choice = &whole["choices"][0];
    assert_eq!(choice["finish_reason"], "tool_calls");
    assert_eq!(choice["message"]["content"], Value::Null);
    let call = &choice["message"]["tool_calls"][0];
    assert_eq!(call["function"]["name"], "weather");
    let arguments = call["function"]["arguments"].as_str().expect("a text");
    let value: Value = serde_json::from_str(arguments).expect("JSON");
    assert!(value["city"] == "Oslo" || value["city"] == "Rome", "{value}");

    let chunks = post(&router, PATH, &with(&request, &json!({"stream": true}))).await.chunks();
    let deltas = chunks.iter().flat_map(|chunk| {
        let calls = chunk["choices"][0]["delta"].get("tool_calls");
        calls.and_then(Value::as_array).cloned().unwrap_or_default()
    });
    let deltas: Vec<Value> = deltas.collect();
    assert!(deltas.iter().all(|delta| delta["index"] == 0), "one call");
    assert_eq!(deltas[0]["id"], call["id"]);
    assert_eq!(deltas[0]["function"]["name"], "weather");
    assert!(deltas[1..].iter().all(|delta| delta.get("id").is_none()));
    let pieces = deltas.iter().filter_map(|delta| delta["function"]["arguments"].as_str());
    assert_eq!(pieces.collect::<String>(), arguments);
}

/// A format in each API, with the path of its text and what says how it ended.
fn formats(
    schema: &Value,
    most: usize,
) -> [(&'static str, Value, &'static str, [&'static str; 2]); 4] {
    let messages = json!([{"role": "user", "content": "Who?"}]);
    let format = json!({"type": "json_schema", "schema": schema});
    let described = json!({"type": "json_schema", "json_schema": {"name": "a", "schema": schema}});
    [
        (
            PATH,
            json!({"messages": messages, "max_tokens": most, "response_format": described}),
            "/choices/0/message/content",
            ["/choices/0/finish_reason", "length"],
        ),
        (
            "/v1/responses",
            json!({"input": "Who?", "max_output_tokens": most, "text": {"format": format}}),
            "/output/0/content/0/text",
            ["/incomplete_details/reason", "max_output_tokens"],
        ),
        (
            "/v1/messages",
            json!({"messages": messages, "max_tokens": most, "output_config": {"format": format}}),
            "/content/0/text",
            ["/stop_reason", "max_tokens"],
        ),
        (
            "/api/chat",
            json!({"messages": messages, "format": schema, "stream": false, "options": {"num_predict": most}}),
            "/message/content",
            ["/done_reason", "length"],
        ),
    ]
}

#[tokio::test]
async fn each_api_ends_json_in_time_or_says_that_it_did_not() {
    let router = shared_router();
    let person = json!({
        "type": "object",
        "properties": {"name": {"type": "string"}, "age": {"type": "integer"}},
        "required": ["name", "age"],
    });
    for (path, request, text, [end, reason]) in formats(&person, 40) {
        let answer = post(&router, path, &request).await.json();
        let text = answer.pointer(text).and_then(Value::as_str);
        let value: Value = serde_json::from_str(text.expect("a text")).expect("JSON");
        assert_eq!(value.as_object().map(serde_json::Map::len), Some(2), "{path}: {answer}");
        assert_ne!(answer.pointer(end), Some(&reason.into()), "{path}: {answer}");
    }
    for (path, request, _, [end, reason]) in
        formats(&json!({"type": "string", "minLength": 200}), 8)
    {
        let answer = post(&router, path, &request).await.json();
        assert_eq!(answer.pointer(end), Some(&reason.into()), "{path}: {answer}");
    }
}
