//! Ollama's API against the engine's answers.

use axum::{body::Body, http::Request};
use serde_json::{Value, json};
use setun::{GenerateOptions, Message, Pooling, Prompt};
use setun_serve::{ApiKeys, ServeOptions, router};

use crate::support::{Answer, MODEL, engine_with, get, post, send, shared, shared_router, with};

const PROMPT: &str = "Once upon a time";

/// The lines of an answer that came in pieces.
#[track_caller]
fn lines(answer: &Answer) -> Vec<Value> {
    assert_eq!(answer.headers["content-type"], "application/x-ndjson", "{}", answer.text);
    assert!(answer.text.ends_with('\n'));
    answer.text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect()
}

#[tokio::test]
async fn texts_and_chats_are_the_engines_in_one_piece_and_in_lines() {
    let router = shared_router();
    let own =
        GenerateOptions::new().max_tokens(20).temperature(0.9).seed(11).repetition_penalty(1.1);
    let options = json!({"num_predict": 20, "temperature": 0.9, "seed": 11, "repeat_penalty": 1.1,
        "num_ctx": 99, "mirostat": 0, "mirostat_tau": 5.0});
    let chat = || vec![Message::system("You are a dog."), Message::user("A cat sat.")];
    let messages = json!([{"role": "system", "content": "You are a dog."},
        {"role": "user", "content": "A cat sat.", "images": []}]);
    let system = json!({"system": "You are a dog.", "prompt": "A cat sat."});
    for (path, body, prompt) in [
        ("/api/generate", json!({"prompt": PROMPT, "raw": true}), Prompt::from(PROMPT)),
        ("/api/generate", system, chat().into()),
        ("/api/chat", json!({"messages": messages, "think": false}), chat().into()),
    ] {
        let expected = shared().complete(prompt, own.clone()).expect("a text");
        let request = json!({"model": format!("{MODEL}:latest"), "options": options});
        let request = with(&request, &body);
        let text = |line: &Value| {
            let text = line.get("response").unwrap_or_else(|| &line["message"]["content"]);
            text.as_str().expect("a text").to_owned()
        };
        let whole = post(&router, path, &with(&request, &json!({"stream": false}))).await.json();
        assert_eq!(text(&whole), expected.text, "{path}");
        let lines = lines(&post(&router, path, &request).await);
        assert_eq!(lines.iter().map(text).collect::<String>(), expected.text, "{path}");
        let (last, others) = lines.split_last().expect("a line");
        assert!(others.len() > 1 && others.iter().all(|line| line["done"] == false));
        for end in [&whole, last] {
            assert_eq!(end["done"], true);
            assert_eq!(end["done_reason"], expected.done.finish_reason.as_str());
            assert_eq!(end["prompt_eval_count"], expected.done.usage.prompt_tokens);
            assert_eq!(end["eval_count"], expected.done.usage.completion_tokens);
            assert!(end["total_duration"].is_u64(), "{end}");
        }
    }
}

#[tokio::test]
async fn arguments_of_calls_are_objects_and_are_taken_back() {
    let (router, path) = (shared_router(), "/api/chat");
    let parameters = json!({"type": "object", "properties": {"city": {"enum": ["Oslo", "Rome"]}},
        "required": ["city"], "additionalProperties": false});
    let function = json!({"name": "weather", "parameters": parameters});
    let messages = json!([{"role": "user", "content": "How warm is it?"}]);
    let request = json!({"messages": messages, "tool_choice": "required", "stream": false,
        "parallel_tool_calls": false,
        "tools": [{"type": "function", "function": function}], "options": {"temperature": 1, "seed": 3}});
    let whole = post(&router, path, &request).await.json();
    let calls = whole["message"]["tool_calls"].as_array().expect("calls");
    assert!(!calls.is_empty() && whole["done_reason"] == "stop", "{whole}");
    let is_valid = |call: &Value| {
        ["Oslo", "Rome"].iter().any(|city| call["function"]["arguments"] == json!({"city": city}))
    };
    assert!(calls.iter().all(is_valid), "{whole}");
    let lines = lines(&post(&router, path, &with(&request, &json!({"stream": true}))).await);
    let streamed = lines.iter().filter_map(|line| line["message"]["tool_calls"].as_array());
    assert_eq!(streamed.flatten().collect::<Vec<_>>(), calls.iter().collect::<Vec<_>>());

    let result = json!({"role": "tool", "tool_name": "weather", "content": "11"});
    let history = json!([messages[0], whole["message"], result]);
    let next = json!({"messages": history, "tool_choice": "none", "options": {"num_predict": 3}});
    let answer = post(&router, path, &with(&request, &next)).await.json();
    assert_eq!(answer["eval_count"], 3);
}

#[tokio::test]
async fn formats_vectors_and_lists_have_their_shapes() {
    let router = shared_router();
    let format = json!({"type": "object", "properties": {"warm": {"type": "boolean"}},
        "required": ["warm"], "additionalProperties": false});
    let request = json!({"prompt": "Is it warm?", "format": format, "stream": false});
    let answer = post(&router, "/api/generate", &request).await.json();
    let value: Value =
        serde_json::from_str(answer["response"].as_str().expect("a text")).expect("JSON");
    assert!(value["warm"].is_boolean(), "{value}");
    let loaded = post(&router, "/api/generate", &json!({"model": MODEL})).await.json();
    assert_eq!((&loaded["done_reason"], &loaded["response"]), (&json!("load"), &json!("")));

    let own = shared().embed(["A cat", "A dog"], Pooling::Last, true).await;
    let own: Vec<_> = own.into_iter().map(|one| one.expect("a vector").values).collect();
    let answer = post(&router, "/api/embed", &json!({"input": ["A cat", "A dog"]})).await;
    assert!(answer.text.contains(&serde_json::to_string(&own).expect("JSON")), "{}", answer.text);
    let long = json!({"prompt": "a dog ".repeat(4000), "keep_alive": 0});
    let cut = post(&router, "/api/embeddings", &long).await.json();
    assert_eq!(cut["embedding"].as_array().expect("a vector").len(), own[0].len());

    let name = format!("{MODEL}:latest");
    for path in ["/api/tags", "/api/ps"] {
        assert_eq!(get(&router, path).await.json()["models"][0]["name"], name, "{path}");
    }
    // Clients compare its numbers, of which there are three.
    let version = get(&router, "/api/version").await.json()["version"].clone();
    let version = version.as_str().expect("a text").split('.').map(str::parse::<u32>);
    let version: Vec<_> = version.map(|number| number.expect("a number")).collect();
    assert!(version.len() == 3 && version >= vec![0, 6, 4], "{version:?}");
    let head = send(&router, Request::head("/").body(Body::empty()).expect("a request")).await;
    assert_eq!((head.status.as_u16(), &*head.text), (200, ""));
}

#[tokio::test]
async fn a_model_is_shown_with_its_sizes_and_template() {
    let router = shared_router();
    let shown =
        post(&router, "/api/show", &json!({"model": format!("{MODEL}:latest")})).await.json();
    assert_eq!(shown["capabilities"], json!(["completion", "embedding", "tools"]));
    let mut info = shown["model_info"].clone();
    assert_eq!(info["general.basename"].take(), MODEL);
    let expected = json!({
        "general.architecture": "bitnet",
        "general.basename": null,
        "general.parameter_count": 1_250_432,
        "bitnet.context_length": 512,
        "bitnet.vocab_size": 512,
        "bitnet.block_count": 8,
        "bitnet.embedding_length": 128,
        "bitnet.feed_forward_length": 256,
        "bitnet.attention.head_count": 8,
        "bitnet.attention.head_count_kv": 4,
    });
    assert_eq!(info, expected);
    for path in ["/api/tags", "/api/ps"] {
        assert_eq!(get(&router, path).await.json()["models"][0]["details"], shown["details"]);
    }
    let expected = json!({"parent_model": "", "format": "setun", "family": "bitnet",
        "families": ["bitnet"], "parameter_size": "1.25M", "quantization_level": "ternary"});
    assert_eq!(shown["details"], expected);
    let engine = shared();
    let (_, template) = engine.chat_templates().next().expect("a template");
    assert!(template.contains("m.content"));
    assert_eq!(shown["template"], template);
    let parameters = shown["parameters"].as_str().expect("a text").lines();
    let parameters: Vec<_> = parameters.filter_map(|line| line.split_once(' ')).collect();
    let context = parameters.iter().find(|(name, _)| *name == "num_ctx").expect("a context");
    assert_eq!(context.1.trim(), "512");
    assert!(parameters.iter().any(|(name, _)| *name == "temperature"), "{parameters:?}");

    let thinker = "{% for m in messages %}{{ m.content.split('</think>')[-1] }}{% endfor %}";
    let routes = self::router(engine_with(thinker, |_| {}), ServeOptions::new());
    let shown = post(&routes, "/api/show", &json!({})).await.json();
    assert_eq!(shown["capabilities"], json!(["completion", "embedding", "tools", "thinking"]));
    assert_eq!(shown["template"], thinker);
}

#[tokio::test]
async fn errors_are_sentences_with_a_status() {
    let keys = ServeOptions::new().api_keys(ApiKeys::parse("first").expect("a key"));
    let (routes, closed) = (shared_router(), router(shared(), keys));
    let (generate, chat) = ("/api/generate", "/api/chat");
    let image = json!({"messages": [{"role": "user", "content": "a", "images": ["aGk="]}]});
    let mut answers = vec![];
    for (path, body, status, words) in [
        (generate, json!({"model": "x:latest", "prompt": "a"}), 404, "found \"x:latest\""),
        (generate, json!({"prompt": "a", "suffix": "b"}), 400, "suffix: not supported"),
        (generate, json!({"prompt": "a", "keep_alive": "soon"}), 400, "keep_alive: expected"),
        (generate, json!({"prompt": "a", "think": "much"}), 400, "think: expected one of none"),
        (generate, json!({"prompt": "a", "think": 3}), 400, "think: expected true, false or a"),
        (generate, json!({"prompt": "a", "format": "xml"}), 400, "format: expected \"json\""),
        (generate, json!({"prompt": "a", "options": {"top_p": 2}}), 400, "options.top_p: expected"),
        (generate, json!({"prompt": "a", "options": {"mirostat": 1}}), 400, "options.mirostat"),
        (chat, image, 400, "messages[0].images: not supported"),
        (chat, json!({"messages": [{"content": "a"}]}), 400, "messages[0]: `role` is missing"),
        (chat, json!({"messages": 1}), 400, "messages: expected a list"),
        ("/api/pull", json!({"model": "x"}), 403, "setun models pull"),
        ("/api/embed", json!({"input": "a", "truncate": 1}), 400, "truncate: expected true or"),
        ("/api/nothing", json!({}), 404, "there is no /api/nothing"),
    ] {
        answers.push((post(&routes, path, &body).await, status, words));
    }
    answers.push((get(&routes, generate).await, 405, "does not take GET"));
    answers.push((get(&closed, "/api/tags").await, 401, "with a key of this server"));
    for (answer, status, words) in answers {
        let body: Value = serde_json::from_str(&answer.text).expect("JSON");
        assert!(body["error"].as_str().expect(&answer.text).contains(words), "{body}");
        assert_eq!(
            (answer.status.as_u16(), body.as_object().expect("an object").len()),
            (status, 1)
        );
    }
}
