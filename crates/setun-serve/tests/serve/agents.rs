//! Tools, schemas and histories as programs of agents send them, in each API.

use serde_json::{Value, json};

use crate::support::{Answer, post, shared_router, with};

const CHAT: &str = "/v1/chat/completions";
const RESPONSES: &str = "/v1/responses";
const MESSAGES: &str = "/v1/messages";
const OLLAMA: &str = "/api/chat";

/// A request of an API that offers a tool with this schema.
fn request(path: &str, parameters: &Value, strict: bool) -> Value {
    let messages = json!([{"role": "user", "content": "Go"}]);
    let function = json!({"name": "f", "parameters": parameters, "strict": strict});
    let nested = json!([{"type": "function", "function": function}]);
    match path {
        CHAT => json!({"messages": messages, "tools": nested, "max_tokens": 120, "seed": 1}),
        RESPONSES => {
            let flat = with(&function, &json!({"type": "function"}));
            let others = json!({"type": "web_search"});
            json!({"input": messages, "tools": [others, flat], "max_output_tokens": 120, "seed": 1})
        }
        MESSAGES => {
            let tool = json!({"name": "f", "input_schema": parameters, "strict": strict});
            json!({"messages": messages, "tools": [tool], "max_tokens": 120, "seed": 1})
        }
        _ => json!({"messages": messages, "tools": nested, "stream": false,
            "options": {"num_predict": 120, "seed": 1}}),
    }
}

/// What has the model call a tool.
fn required(path: &str) -> Value {
    if path == MESSAGES {
        json!({"tool_choice": {"type": "any", "disable_parallel_tool_use": true}})
    } else {
        json!({"tool_choice": "required", "parallel_tool_calls": false})
    }
}

/// The calls' arguments, and the text.
fn parts(path: &str, answer: &Value) -> (Vec<Value>, String) {
    let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
    let read = |text: &Value| serde_json::from_str(text.as_str().expect("a text")).expect("JSON");
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let of_kind = |list: Vec<Value>, kind: &'static str| -> Vec<Value> {
        list.into_iter().filter(|item| item["type"] == kind).collect()
    };
    match path {
        CHAT => {
            let message = &answer["choices"][0]["message"];
            let calls = list(&message["tool_calls"]);
            let calls = calls.iter().map(|call| read(&call["function"]["arguments"]));
            (calls.collect(), text(&message["content"]))
        }
        RESPONSES => {
            let calls = of_kind(list(&answer["output"]), "function_call");
            let texts = of_kind(list(&answer["output"]), "message");
            let texts = texts.iter().map(|item| text(&item["content"][0]["text"])).collect();
            (calls.iter().map(|item| read(&item["arguments"])).collect(), texts)
        }
        MESSAGES => {
            let calls = of_kind(list(&answer["content"]), "tool_use");
            let texts = of_kind(list(&answer["content"]), "text");
            let texts = texts.iter().map(|block| text(&block["text"])).collect();
            (calls.iter().map(|block| block["input"].clone()).collect(), texts)
        }
        _ => {
            let calls = list(&answer["message"]["tool_calls"]);
            let calls = calls.iter().map(|call| call["function"]["arguments"].clone());
            (calls.collect(), text(&answer["message"]["content"]))
        }
    }
}

fn warnings(answer: &Answer) -> Vec<String> {
    let all = answer.headers.get_all("x-setun-warning").iter();
    let all = all.map(|warning| warning.to_str().expect("ASCII").to_owned());
    all.filter(|warning| !warning.contains("only functions")).collect()
}

/// A schema of one property that is one of two words, beside another.
fn beside(name: &str, schema: &Value) -> Value {
    json!({"type": "object", "properties": {"word": {"enum": ["a", "b"]}, name: schema},
        "required": ["word"], "additionalProperties": false})
}

/// Keywords that programs send and no grammar follows: patterns of Claude Code, and others.
#[tokio::test]
async fn what_cannot_be_constrained_is_left_free_unless_the_tool_is_strict() {
    let router = shared_router();
    let schemas = [
        (
            json!({"type": "string", "pattern": "^(?!\\.\\.?(?:\\/|$))[A-Za-z0-9_.~:@+-]{1,200}$"}),
            "look-around",
        ),
        (json!({"type": "array", "items": {"type": "string"}, "uniqueItems": true}), "uniqueItems"),
        (json!({"not": {"type": "null"}}), "`not`"),
        (json!({"type": "integer", "minimum": i64::MIN}), "minimum"),
        (json!({"if": {"type": "string"}, "then": {"minLength": 1}}), "`if`"),
        (json!({"oneOf": [{"type": "string"}, {"type": "string", "minLength": 2}]}), "oneOf"),
        (json!({"type": "string", "required": true}), "required"),
    ];
    for (schema, words) in schemas {
        let parameters = beside("free", &schema);
        for path in [CHAT, RESPONSES, MESSAGES, OLLAMA] {
            let body = with(&request(path, &parameters, false), &required(path));
            let answer = post(&router, path, &body).await;
            let warnings = warnings(&answer);
            assert!(
                warnings.iter().any(|it| it.contains(words) && it.contains("`f`")),
                "{warnings:?}"
            );
            let answer = answer.json();
            if answer.to_string().contains("length") || answer.to_string().contains("max_") {
                continue; // cut by the limit
            }
            let (calls, _) = parts(path, &answer);
            assert!(["a", "b"].iter().any(|word| calls[0]["word"] == *word), "{answer}");
        }
        for (path, place) in
            [(CHAT, "tools[0].function.parameters"), (RESPONSES, "tools[1].parameters")]
        {
            let answer = post(&router, path, &request(path, &parameters, true)).await;
            assert_eq!(answer.status.as_u16(), 400, "{}", answer.text);
            let error = answer.error();
            assert_eq!(error["param"], place, "{error}");
            assert!(error["message"].as_str().is_some_and(|text| text.contains(words)), "{error}");
        }
        for path in [MESSAGES, OLLAMA] {
            let answer = post(&router, path, &request(path, &parameters, true)).await;
            assert_eq!(answer.status.as_u16(), 400, "{}", answer.text);
            assert!(answer.text.contains("the tool `f`"), "{}", answer.text);
        }
    }
}

/// Formats of `OpenAPI` and schemars, of which each Rust integer has one.
#[tokio::test]
async fn unknown_formats_are_annotations_and_those_of_integers_ranges() {
    let router = shared_router();
    for format in ["uint32", "int32", "int64", "uint64", "uint", "uint8", "float", "double", "path"]
    {
        let number = json!({"type": "integer", "format": format, "minimum": 0, "maximum": 9});
        let schema = json!({"$schema": "http://json-schema.org/draft-07/schema#", "type": "object",
            "properties": {"depth": number}, "required": ["depth"], "additionalProperties": false});
        for path in [CHAT, RESPONSES, MESSAGES, OLLAMA] {
            let body = with(&request(path, &schema, true), &required(path));
            let answer = post(&router, path, &body).await;
            assert_eq!(warnings(&answer), [""; 0]);
            let (calls, _) = parts(path, &answer.json());
            assert!(calls[0]["depth"].as_u64().is_some_and(|depth| depth < 10), "{calls:?}");
        }
        let format = json!({"type": "json_schema", "json_schema": {"name": "a", "schema": schema}});
        let body = json!({"messages": [{"role": "user", "content": "Go"}], "seed": 2,
            "max_tokens": 60, "response_format": format});
        let (_, text) = parts(CHAT, &post(&router, CHAT, &body).await.json());
        let value: Value = serde_json::from_str(&text).expect("JSON");
        assert!(value["depth"].as_u64().is_some_and(|depth| depth < 10), "{text}");
    }
    let unsigned = json!({"type": "object", "properties": {"n": {"type": "integer", "format": "uint8"}},
        "required": ["n"], "additionalProperties": false});
    for seed in 0..10 {
        let body = with(&request(CHAT, &unsigned, false), &required(CHAT));
        let answer =
            post(&router, CHAT, &with(&body, &json!({"seed": seed, "temperature": 2}))).await;
        let (calls, _) = parts(CHAT, &answer.json());
        assert!(calls[0]["n"].as_u64().is_some_and(|n| n < 256), "{calls:?}");
    }
}

/// A history whose call has no arguments, in the ways in which clients write that.
#[tokio::test]
async fn a_call_without_arguments_is_taken_back() {
    let router = shared_router();
    let chat = |function: Value| {
        let call = json!({"id": "c1", "type": "function", "function": function});
        json!([{"role": "user", "content": "hi"},
            {"role": "assistant", "content": null, "tool_calls": [call]},
            {"role": "tool", "tool_call_id": "c1", "content": "12:00"}])
    };
    let function = |arguments: Value| json!({"name": "now", "arguments": arguments});
    let count = |messages: Value| {
        let router = router.clone();
        async move { post(&router, "/tokenize", &json!({"messages": messages})).await.json() }
    };
    let expected = count(chat(function(json!("{}")))).await["tokens"].clone();
    for function in [function(json!("")), function(json!(null)), json!({"name": "now"})] {
        assert_eq!(count(chat(function.clone())).await["tokens"], expected, "{function}");
        let body = json!({"messages": chat(function.clone()), "max_tokens": 2});
        post(&router, CHAT, &body).await.json();
        let body =
            json!({"messages": chat(function), "stream": false, "options": {"num_predict": 2}});
        post(&router, OLLAMA, &body).await.json();
    }
    let broken = post(&router, CHAT, &json!({"messages": chat(function(json!("[1]")))})).await;
    assert_eq!(broken.error()["param"], "messages");
    let tokens = |path: &'static str, body: Value| {
        let router = router.clone();
        async move { post(&router, path, &body).await.json()["input_tokens"].clone() }
    };
    let items = |call: Value| {
        json!({"input": [{"role": "user", "content": "hi"}, call,
            {"type": "function_call_output", "call_id": "c1", "output": "12:00"}]})
    };
    let item = json!({"type": "function_call", "call_id": "c1", "name": "now"});
    let path = "/v1/responses/input_tokens";
    let expected = tokens(path, items(with(&item, &json!({"arguments": "{}"})))).await;
    assert!(expected.is_u64());
    for more in [json!({"arguments": ""}), json!({"arguments": null}), json!({})] {
        assert_eq!(tokens(path, items(with(&item, &more))).await, expected, "{more}");
    }
    let blocks = |call: Value| {
        json!({"messages": [{"role": "user", "content": "hi"}, {"role": "assistant", "content": [call]},
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c1"}]}]})
    };
    let block = json!({"type": "tool_use", "id": "c1", "name": "now"});
    let path = "/v1/messages/count_tokens";
    let expected = tokens(path, blocks(with(&block, &json!({"input": {}})))).await;
    assert!(expected.is_u64());
    for more in [json!({"input": ""}), json!({"input": null}), json!({})] {
        assert_eq!(tokens(path, blocks(with(&block, &more))).await, expected, "{more}");
    }
}

/// A union whose parts are told apart behind references, as pydantic and schemars write them.
#[tokio::test]
async fn unions_of_references_are_followed() {
    let router = shared_router();
    let part = |kind: Value, field: &str| {
        json!({"type": "object", "required": ["kind", field],
            "properties": {"kind": kind, field: {"type": "boolean"}}})
    };
    let schema = json!({"type": "object", "required": ["pet"], "additionalProperties": false,
    "properties": {"pet": {"$ref": "#/$defs/Pet"}},
    "$defs": {
        "Pet": {"discriminator": {"propertyName": "kind"},
            "oneOf": [{"$ref": "#/$defs/Cat"}, {"$ref": "#/$defs/Dog"}]},
        "Cat": part(json!({"const": "cat"}), "purrs"),
        "Dog": part(json!({"enum": ["dog", "hound"]}), "barks"),
    }});
    let format = |path: &str| match path {
        CHAT => json!({"response_format": {"type": "json_schema",
            "json_schema": {"name": "out", "strict": true, "schema": schema}}}),
        RESPONSES => json!({"text": {"format":
            {"type": "json_schema", "name": "out", "schema": schema}}}),
        MESSAGES => json!({"output_config": {"format":
            {"type": "json_schema", "schema": schema}}}),
        _ => json!({"format": schema}),
    };
    for path in [CHAT, RESPONSES, MESSAGES, OLLAMA] {
        let plain = request(path, &json!({"type": "object"}), false);
        let plain = with(&plain, &json!({"tools": null}));
        let answer = post(&router, path, &with(&plain, &format(path))).await.json();
        let (_, text) = parts(path, &answer);
        let document: Value = serde_json::from_str(&text).unwrap_or_else(|_| panic!("{text}"));
        let pet = &document["pet"];
        let field = if pet["kind"] == "cat" { "purrs" } else { "barks" };
        assert!(pet[field].is_boolean(), "{path}: {document}");
    }
}

/// A tool that is no function is not offered, and the answer says so.
#[tokio::test]
async fn tools_that_are_no_functions_are_warned_of() {
    let router = shared_router();
    let user = json!([{"role": "user", "content": "Go"}]);
    let custom = json!({"type": "custom", "name": "patch"});
    let namespace = json!({"type": "namespace", "name": "n", "tools": []});
    let search = json!({"type": "web_search_20250305", "name": "web_search"});
    for (path, body, kinds) in [
        (RESPONSES, json!({"input": user, "tools": [custom, namespace]}), ["custom", "namespace"]),
        (
            MESSAGES,
            json!({"messages": user, "max_tokens": 2, "tools": [search, search]}),
            ["web_search_20250305"; 2],
        ),
    ] {
        let answer = post(&router, path, &with(&body, &json!({"max_output_tokens": 2}))).await;
        let all = answer.headers.get_all("x-setun-warning").iter();
        let all: Vec<_> = all.map(|warning| warning.to_str().expect("ASCII")).collect();
        for (index, kind) in kinds.into_iter().enumerate() {
            let expected = format!("`tools[{index}].type` is `{kind}`");
            assert!(all.iter().any(|warning| warning.contains(&expected)), "{path}: {all:?}");
        }
        answer.json();
    }
    let body =
        json!({"messages": user, "tools": [{"type": "custom", "custom": {"name": "patch"}}]});
    assert_eq!(post(&router, CHAT, &body).await.error()["param"], "tools[0].type");
}

/// An answer is a call or a document of the format.
#[tokio::test]
async fn tools_and_a_format_go_together() {
    let router = shared_router();
    let city = |name: &str| {
        json!({"type": "object", "properties": {"city": {"enum": [name]}}, "required": ["city"],
            "additionalProperties": false})
    };
    let format = |path: &str| match path {
        CHAT => json!({"response_format": {"type": "json_schema",
            "json_schema": {"name": "out", "strict": true, "schema": city("Bergen")}}}),
        RESPONSES => json!({"text": {"format":
            {"type": "json_schema", "name": "out", "schema": city("Bergen")}}}),
        MESSAGES => json!({"output_config": {"format":
            {"type": "json_schema", "schema": city("Bergen")}}}),
        _ => json!({"format": city("Bergen")}),
    };
    let (oslo, bergen) = (json!({"city": "Oslo"}), json!({"city": "Bergen"}));
    for path in [CHAT, RESPONSES, MESSAGES, OLLAMA] {
        let body = with(&request(path, &city("Oslo"), false), &format(path));
        let none = if path == MESSAGES { json!({"type": "none"}) } else { json!("none") };
        for (choice, expected) in [
            (json!({}), None),
            (required(path), Some(&oslo)),
            (json!({"tool_choice": none}), Some(&bergen)),
        ] {
            for seed in 0..4 {
                let seed = if path == OLLAMA {
                    json!({"options": {"num_predict": 120, "seed": seed, "temperature": 1}})
                } else {
                    json!({"seed": seed, "temperature": 1})
                };
                let answer = post(&router, path, &with(&with(&body, &choice), &seed)).await.json();
                let (calls, text) = parts(path, &answer);
                let found = match &calls[..] {
                    [] => {
                        serde_json::from_str(&text).unwrap_or_else(|_| panic!("{path}: {answer}"))
                    }
                    calls => {
                        assert_eq!(text, "", "{path}");
                        assert!(calls.iter().all(|call| *call == oslo), "{path}: {answer}");
                        oslo.clone()
                    }
                };
                let is_right = expected.map_or(found == oslo || found == bergen, |it| *it == found);
                assert!(is_right, "{path} {choice}: {answer}");
                assert_eq!(calls.is_empty(), found == bergen, "{path}: {answer}");
            }
        }
    }
}

/// Null is a field that is not there, and an answer or a result without content is empty.
#[tokio::test]
async fn null_and_absent_fields_of_messages_are_taken() {
    let router = shared_router();
    let ollama = |message: Value| json!({"stream": false, "options": {"num_predict": 2}, "messages": [message]});
    for message in [
        json!({"role": "user", "content": "hi", "images": null}),
        json!({"role": "user", "content": "hi", "images": [], "tool_calls": null, "thinking": null}),
        json!({"role": "user", "content": null}),
        json!({"role": "tool", "tool_name": null, "content": "a"}),
        json!({"role": "assistant"}),
    ] {
        post(&router, OLLAMA, &ollama(message)).await.json();
    }
    let image = json!({"role": "user", "content": "hi", "images": ["aGk="]});
    assert_eq!(post(&router, OLLAMA, &ollama(image)).await.status.as_u16(), 400);
    for message in [json!({"role": "assistant"}), json!({"role": "tool", "tool_call_id": "1"})] {
        let messages = json!([{"role": "user", "content": "a"}, message]);
        post(&router, CHAT, &json!({"messages": messages, "max_tokens": 2})).await.json();
    }
}

/// A call that is cut says so.
#[tokio::test]
async fn a_call_that_is_cut_says_so() {
    let router = shared_router();
    let schema = json!({"type": "object", "properties": {"a": {"type": "string", "minLength": 300}},
        "required": ["a"], "additionalProperties": false});
    for (path, place, reason) in [
        (CHAT, "/choices/0/finish_reason", "length"),
        (RESPONSES, "/incomplete_details/reason", "max_output_tokens"),
        (MESSAGES, "/stop_reason", "max_tokens"),
        (OLLAMA, "/done_reason", "length"),
    ] {
        let body = with(&request(path, &schema, false), &required(path));
        let answer = post(&router, path, &body).await.json();
        assert_eq!(answer.pointer(place), Some(&json!(reason)), "{path}: {answer}");
    }
}
