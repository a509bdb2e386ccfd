//! Named tools, tools that the model may leave, and several calls, in each API that has them.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::support::{post, shared_router, with};

const CHAT: &str = "/v1/chat/completions";
const RESPONSES: &str = "/v1/responses";
const MESSAGES: &str = "/v1/messages";
const OLLAMA: &str = "/api/chat";

/// Two tools whose argument is one of two words. They are short: the model's context is, too.
fn tools() -> [(&'static str, Value); 2] {
    [("up", "a", ["b", "c"]), ("down", "d", ["e", "f"])].map(|(name, field, words)| {
        let schema = json!({"type": "object", "properties": {field: {"enum": words}},
            "required": [field], "additionalProperties": false});
        (name, schema)
    })
}

/// A request of an API with these tools, in its shape.
fn request(path: &str, seed: u64, tools: &[(&str, Value)]) -> Value {
    let messages = json!([{"role": "user", "content": "Go"}]);
    let listed = |of: fn(&str, &Value) -> Value| -> Vec<Value> {
        tools.iter().map(|(name, schema)| of(name, schema)).collect()
    };
    let functions = listed(
        |name, schema| json!({"type": "function", "function": {"name": name, "parameters": schema}}),
    );
    match path {
        CHAT => json!({"messages": messages, "tools": functions, "temperature": 1, "seed": seed,
            "max_tokens": 300}),
        RESPONSES => {
            let tools = listed(
                |name, schema| json!({"type": "function", "name": name, "parameters": schema, "strict": true}),
            );
            json!({"input": messages, "tools": tools, "temperature": 1, "seed": seed,
                "max_output_tokens": 300})
        }
        MESSAGES => {
            let tools = listed(|name, schema| json!({"name": name, "input_schema": schema}));
            json!({"messages": messages, "tools": tools, "temperature": 1, "seed": seed,
                "max_tokens": 300})
        }
        _ => json!({"messages": messages, "tools": functions, "stream": false,
            "options": {"temperature": 1, "seed": seed, "num_predict": 300}}),
    }
}

/// The calls of an answer: id, name and arguments.
fn calls(path: &str, answer: &Value) -> Vec<(Value, Value, Value)> {
    let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
    // What the limit cuts is no JSON.
    let parsed =
        |text: &Value| serde_json::from_str(text.as_str().expect("a text")).unwrap_or_default();
    let of = |id: &Value, name: &Value, arguments: Value| (id.clone(), name.clone(), arguments);
    match path {
        CHAT => list(&answer["choices"][0]["message"]["tool_calls"])
            .iter()
            .map(|call| {
                let function = &call["function"];
                of(&call["id"], &function["name"], parsed(&function["arguments"]))
            })
            .collect(),
        RESPONSES => list(&answer["output"])
            .iter()
            .filter(|item| item["type"] == "function_call")
            .map(|item| of(&item["call_id"], &item["name"], parsed(&item["arguments"])))
            .collect(),
        MESSAGES => list(&answer["content"])
            .iter()
            .filter(|block| block["type"] == "tool_use")
            .map(|block| of(&block["id"], &block["name"], block["input"].clone()))
            .collect(),
        _ => list(&answer["message"]["tool_calls"])
            .iter()
            .map(|call| {
                of(&call["id"], &call["function"]["name"], call["function"]["arguments"].clone())
            })
            .collect(),
    }
}

fn assert_valid(calls: &[(Value, Value, Value)]) {
    for (_, name, arguments) in calls {
        let expected = match name.as_str() {
            Some("up") => [json!({"a": "b"}), json!({"a": "c"})],
            Some("down") => [json!({"d": "e"}), json!({"d": "f"})],
            _ => panic!("no such tool: {name}"),
        };
        assert!(expected.contains(arguments), "{name}: {arguments}");
    }
}

#[tokio::test]
async fn a_named_tool_is_the_one_that_is_called() {
    let router = shared_router();
    for name in ["up", "down"] {
        let choices = [
            (CHAT, json!({"type": "function", "function": {"name": name}})),
            (RESPONSES, json!({"type": "function", "name": name})),
            (MESSAGES, json!({"type": "tool", "name": name})),
        ];
        for (path, choice) in choices {
            for seed in 0..2 {
                let request = with(&request(path, seed, &tools()), &json!({"tool_choice": choice}));
                let answer = post(&router, path, &request).await.json();
                let calls = calls(path, &answer);
                assert!(!calls.is_empty(), "{path}: {answer}");
                assert!(calls.iter().all(|(_, called, _)| called == name), "{path}: {calls:?}");
                assert_valid(&calls);
            }
        }
    }
}

#[tokio::test]
async fn a_choice_among_some_tools_offers_no_others() {
    let router = shared_router();
    let nested = |name: &str| {
        let tools = json!([{"type": "function", "function": {"name": name}}]);
        json!({"type": "allowed_tools", "allowed_tools": {"mode": "required", "tools": tools}})
    };
    let flat = |name: &str| {
        let tools = json!([{"type": "function", "name": name}]);
        json!({"type": "allowed_tools", "mode": "required", "tools": tools})
    };
    for name in ["up", "down"] {
        for (path, choice) in
            [(CHAT, nested(name)), (OLLAMA, nested(name)), (RESPONSES, flat(name))]
        {
            let single = json!({"tool_choice": choice, "parallel_tool_calls": false});
            let request = with(&request(path, 1, &tools()), &single);
            let calls = calls(path, &post(&router, path, &request).await.json());
            assert!(!calls.is_empty(), "{path}");
            assert!(calls.iter().all(|(_, called, _)| called == name), "{path}: {calls:?}");
            assert_valid(&calls);
        }
    }
    for (path, choice) in [(CHAT, flat("up")), (RESPONSES, nested("up")), (OLLAMA, flat("up"))] {
        let request = with(&request(path, 1, &tools()), &json!({"tool_choice": choice}));
        let answer = post(&router, path, &request).await;
        assert_eq!(answer.status.as_u16(), 400, "{path}: {}", answer.text);
        assert!(answer.text.contains("tool_choice"), "{path}: {}", answer.text);
    }
}

/// The model knows no tools, so its texts hold no calls; with its own choice it may write one.
#[tokio::test]
async fn a_model_that_may_choose_writes_a_text() {
    let router = shared_router();
    let auto = json!({"tool_choice": "auto"});
    let choices = [
        (CHAT, auto.clone(), "/choices/0/message/content"),
        (RESPONSES, auto, "/output/0/content/0/text"),
        (MESSAGES, json!({"tool_choice": {"type": "auto"}}), "/content/0/text"),
        (OLLAMA, json!({}), "/message/content"),
    ];
    let mut texts = BTreeSet::new();
    for (path, choice, place) in choices {
        let answer = post(&router, path, &with(&request(path, 1, &tools()), &choice)).await.json();
        let text = answer.pointer(place).and_then(Value::as_str).unwrap_or_default();
        assert!(!text.is_empty(), "{path}: {answer}");
        assert_eq!(calls(path, &answer), [], "{path}");
        texts.insert(text.to_owned());
    }
    assert_eq!(texts.len(), 1, "one engine has one text: {texts:?}");
}

#[tokio::test]
async fn several_calls_have_ids_and_places_of_their_own() {
    let router = shared_router();
    let nothing = json!({"type": "object", "properties": {}, "additionalProperties": false});
    let tools = [("go", nothing)];
    let choices = [
        (CHAT, json!({"tool_choice": "required", "parallel_tool_calls": true})),
        (RESPONSES, json!({"tool_choice": "required", "parallel_tool_calls": true})),
        (MESSAGES, json!({"tool_choice": {"type": "any", "disable_parallel_tool_use": false}})),
    ];
    for (path, choice) in choices {
        let mut most = 0;
        for seed in 0..5 {
            let request = with(&request(path, seed, &tools), &choice);
            let answer = post(&router, path, &request).await.json();
            let mut calls = calls(path, &answer);
            let kept = calls.len() - usize::from(is_cut(&answer) && !calls.is_empty());
            calls.truncate(kept);
            let ids: BTreeSet<String> = calls.iter().map(|(id, ..)| id.to_string()).collect();
            assert_eq!(ids.len(), calls.len(), "{path}: {calls:?}");
            assert!(calls.iter().all(|(_, name, with)| name == "go" && *with == json!({})));
            most = most.max(calls.len());
            if path == CHAT && calls.len() > 1 {
                let request = with(&request, &json!({"stream": true}));
                let chunks = post(&router, path, &request).await.chunks();
                assert_eq!(joined(&chunks)[..kept], calls);
            }
        }
        assert!(most > 1, "{path}: never more than {most} calls");
    }
}

/// Whether the limit ended it, maybe within a call.
fn is_cut(answer: &Value) -> bool {
    answer["choices"][0]["finish_reason"] == "length"
        || answer["status"] == "incomplete"
        || answer["stop_reason"] == "max_tokens"
}

/// The calls of a stream, by the indices of its deltas.
fn joined(chunks: &[Value]) -> Vec<(Value, Value, Value)> {
    let mut calls: Vec<(Value, Value, String)> = vec![];
    for chunk in chunks {
        for delta in chunk["choices"][0]["delta"]["tool_calls"].as_array().into_iter().flatten() {
            let index = usize::try_from(delta["index"].as_u64().expect("an index")).expect("small");
            if let Some(id) = delta.get("id") {
                assert_eq!(index, calls.len(), "calls come one after the other");
                calls.push((id.clone(), delta["function"]["name"].clone(), String::new()));
            }
            let piece = delta["function"]["arguments"].as_str().unwrap_or_default();
            calls[index].2.push_str(piece);
        }
    }
    let whole = |(id, name, arguments): (Value, Value, String)| {
        (id, name, serde_json::from_str(&arguments).unwrap_or_default())
    };
    calls.into_iter().map(whole).collect()
}
