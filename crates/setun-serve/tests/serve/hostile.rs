//! Requests that would stop everybody: long lists, long texts, crowds of one key, clients that do not read.

use std::{
    io::{Read, Write},
    net::TcpStream,
    thread,
    time::Duration,
};

use axum::{Router, body::Body, http::Request};
use serde_json::{Value, json};
use setun_serve::{
    ApiKeys, KeepAlive, Limits, LoadProgress, ModelRegistry, ModelSpec, OpenError, ServeOptions,
    router,
};

use crate::{
    cancellation::Server,
    support::{Answer, Gate, engine, get, post, send, shared, shared_router, with},
    wait::wait_for,
};

/// More than any text of the story model may have, whatever its tokens are.
const TOO_LONG: usize = (1 << 20) + 1;

#[track_caller]
fn assert_refused(answer: &Answer, status: u16, code: &str) -> String {
    let error = answer.error();
    assert_eq!((answer.status.as_u16(), error["code"].as_str()), (status, Some(code)), "{error}");
    error["message"].as_str().expect("words").to_owned()
}

async fn ask(router: &Router, key: &str, path: &str, body: &Value) -> Answer {
    let request = Request::post(path).header("authorization", format!("Bearer {key}"));
    send(router, request.body(Body::from(body.to_string())).expect("a request")).await
}

/// In every API, by the name that the request has for the list.
#[tokio::test]
async fn lists_have_bounds() {
    let router = shared_router();
    let texts = |count: usize, length: usize| json!(vec!["a".repeat(length); count]);
    let user = json!([{"role": "user", "content": "a"}]);
    let chat = json!({"messages": user, "max_tokens": 1});
    let text = json!({"prompt": "a", "max_tokens": 1});
    for (path, body, list, field) in [
        ("/v1/completions", &text, json!({"stop": texts(257, 1)}), "stop"),
        ("/v1/completions", &text, json!({"stop": texts(1, 7_900_000)}), "stop"),
        ("/v1/completions", &text, json!({"stop_token_ids": vec![1; 1025]}), "stop_token_ids"),
        ("/v1/completions", &text, json!({"bad_words": texts(1025, 1)}), "bad_words"),
        ("/v1/completions", &text, json!({"banned_tokens": vec![1; 262_145]}), "banned_tokens"),
        (
            "/v1/completions",
            &text,
            json!({"allowed_token_ids": vec![1; 262_145]}),
            "allowed_token_ids",
        ),
        ("/v1/chat/completions", &chat, json!({"stop": texts(2, 10_000)}), "stop"),
        (
            "/v1/chat/completions",
            &chat,
            json!({"dry_sequence_breakers": texts(257, 1)}),
            "dry_sequence_breakers",
        ),
        ("/v1/messages", &chat, json!({"stop_sequences": texts(257, 1)}), "stop_sequences"),
        ("/v1/responses", &json!({"input": "a"}), json!({"stop": texts(257, 1)}), "stop"),
    ] {
        let answer = post(&router, path, &with(body, &list)).await;
        assert_eq!(answer.status, 400, "{path} {field}");
        let expected = format!("{field}: expected at most ");
        assert!(answer.text.contains(&expected), "{path} {field}: {}", answer.text);
    }
    for options in [json!({"stop": texts(257, 1)}), json!({"bad_words": texts(1, 70_000)})] {
        let body = json!({"prompt": "a", "raw": true, "options": options});
        let answer = post(&router, "/api/generate", &body).await;
        assert_eq!(answer.status, 400, "{}", answer.text);
        assert!(answer.text.contains(": expected at most "), "{}", answer.text);
    }
    let most = with(&text, &json!({"stop": texts(256, 64), "n": 4, "temperature": 1}));
    post(&router, "/v1/completions", &most).await.json();
}

/// Each route that tokenizes a text.
#[tokio::test]
async fn texts_that_no_context_holds_are_not_tokenized() {
    let router = shared_router();
    let long = "a ".repeat(TOO_LONG / 2 + 1);
    let messages = json!([{"role": "user", "content": long}]);
    for (path, body) in [
        ("/tokenize", json!({"prompt": long})),
        ("/tokenize", json!({"messages": messages})),
        ("/detokenize", json!({"tokens": vec![1; TOO_LONG / 8 + 1]})),
        ("/score", json!({"prompt": long, "continuations": ["a"]})),
        ("/score", json!({"prompt": "a", "continuations": [long]})),
        ("/v1/completions", json!({"prompt": long, "add_special_tokens": false})),
        ("/v1/chat/completions", json!({"messages": messages})),
        ("/v1/embeddings", json!({"input": ["a", long]})),
        ("/v1/responses/input_tokens", json!({"input": long})),
    ] {
        let words =
            assert_refused(&post(&router, path, &body).await, 400, "context_length_exceeded");
        assert!(words.contains("or less, found "), "{path}: {words}");
    }
    let counted = post(&router, "/v1/messages/count_tokens", &json!({"messages": messages})).await;
    assert_eq!(counted.status, 400, "{}", counted.text);
    // A text beyond the context is still counted, and Ollama's clients have theirs cut.
    let counted = post(&router, "/tokenize", &json!({"prompt": "a ".repeat(4000)})).await.json();
    assert!(counted["count"].as_u64().expect("a number") > 4000);
    let cut = post(&router, "/api/embed", &json!({"input": long})).await.json();
    assert_eq!(cut["prompt_eval_count"], counted["max_model_len"]);
}

#[tokio::test]
async fn a_prompt_far_beyond_its_limit_is_not_tokenized() {
    let mut limits = Limits::default();
    limits.prompt_tokens = Some(6);
    let router = router(shared(), ServeOptions::new().limits(limits));
    let long = "a ".repeat(20_000);
    let messages = json!([{"role": "user", "content": long}]);
    for (path, body) in [
        ("/v1/completions", json!({"prompt": long})),
        ("/v1/chat/completions", json!({"messages": messages})),
        ("/score", json!({"prompt": long, "continuations": ["a"]})),
    ] {
        let words =
            assert_refused(&post(&router, path, &body).await, 400, "context_length_exceeded");
        assert!(words.contains("expected 6 tokens or less, found at least "), "{path}: {words}");
    }
}

/// Places count, not requests: one key cannot have all of them.
#[tokio::test(flavor = "multi_thread")]
async fn a_key_leaves_places_for_others() {
    let gate = Gate::default();
    let engine = gate.engine_for(4);
    let keys = ApiKeys::parse("first\nsecond").expect("keys");
    let router = router(engine, ServeOptions::new().api_keys(keys));
    let body =
        |more: &Value| with(&json!({"prompt": "A cat", "max_tokens": 3, "min_tokens": 3}), more);
    let refused = ask(&router, "first", "/v1/completions", &body(&json!({"n": 4}))).await;
    let words = assert_refused(&refused, 400, "invalid_value");
    assert!(words.contains("at most 3 texts of a key at once, found 4"), "{words}");
    let begin = |key: &'static str, more: Value| {
        let (router, body) = (router.clone(), body(&more));
        tokio::spawn(async move { ask(&router, key, "/v1/completions", &body).await })
    };
    // Three texts run, and one waits although there is a fourth place: it is there for others at once.
    let first = begin("first", json!({"n": 3, "temperature": 1}));
    gate.wait();
    let more = begin("first", json!({"priority": 1000}));
    listed_by(&router, "first", 2).await;
    let other = begin("second", json!({"queue_timeout": 0}));
    listed_by(&router, "first", 3).await;
    gate.open();
    for answer in [other, first, more] {
        answer.await.expect("no panic").json();
    }
}

/// Waits until this number of requests is under way.
async fn listed_by(router: &Router, key: &str, count: usize) {
    loop {
        let request = Request::get("/ui/requests").header("x-api-key", key).body(Body::empty());
        let list = send(router, request.expect("a request")).await.json();
        if list["data"].as_array().expect("a list").len() == count {
            return;
        }
        tokio::task::yield_now().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn texts_of_a_key_count_and_not_its_requests() {
    let gate = Gate::default();
    let mut limits = Limits::default();
    limits.concurrent_texts = Some(3);
    let keys = ApiKeys::parse("first\nsecond").expect("keys");
    let options = ServeOptions::new().limits(limits).api_keys(keys);
    let router = router(gate.engine_for(8), options);
    let body = |n: usize| json!({"prompt": "A cat", "max_tokens": 3, "min_tokens": 3, "n": n});
    let held = {
        let (router, body) = (router.clone(), body(2));
        tokio::spawn(async move { ask(&router, "first", "/v1/completions", &body).await })
    };
    gate.wait();
    let refused = ask(&router, "first", "/v1/completions", &body(2)).await;
    let words = assert_refused(&refused, 429, "rate_limit_exceeded");
    assert!(words.starts_with("2 texts of this key run or wait, expected at most 3"), "{words}");
    let two = json!({"prompt": ["A cat", "A dog"], "max_tokens": 3});
    assert_refused(
        &ask(&router, "first", "/v1/completions", &two).await,
        429,
        "rate_limit_exceeded",
    );
    gate.open();
    held.await.expect("no panic").json();
    ask(&router, "first", "/v1/completions", &body(3)).await.json();
    let most = ask(&router, "second", "/v1/completions", &body(4)).await;
    assert_refused(&most, 400, "invalid_value");
}

/// A client asks for much and reads nothing: it has the only place for a while, and `/health` is answered
/// all the time.
#[test]
fn a_client_that_does_not_read_is_given_up_and_never_holds_health() {
    let server = Server::start_within(shared(), |limits| {
        limits.connections = Some(1);
        limits.write_timeout = Duration::from_secs(1);
    });
    let text = json!({"prompt": "a b ".repeat(200_000)}).to_string();
    let length = text.len();
    let head =
        format!("POST /tokenize HTTP/1.1\r\nhost: localhost\r\ncontent-length: {length}\r\n\r\n");
    let mut stalled = TcpStream::connect(server.address).expect("a connection");
    let mut sender = stalled.try_clone().expect("a handle");
    // Answers of some megabytes each, more than sockets hold.
    let sending = thread::spawn(move || {
        let request = [head.as_bytes(), text.as_bytes()].concat();
        let _ = (0..16).try_for_each(|_| sender.write_all(&request)); // it is given up
    });
    let get = |path: &str| {
        let head = format!("GET {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n");
        server.send(head.as_bytes()).rest()
    };
    wait_for("the only place is taken", || get("/version").starts_with("HTTP/1.1 429 "));
    assert!(get("/health").starts_with("HTTP/1.1 200 "));
    assert!(get("/ready").starts_with("HTTP/1.1 200 "));
    wait_for("its end", || get("/version").starts_with("HTTP/1.1 200 "));
    sending.join().expect("no panic");
    let mut answers = vec![];
    let _ = stalled.read_to_end(&mut answers); // it may be reset
    assert!(answers.starts_with(b"HTTP/1.1 200 "), "it was answered before");
    drop(stalled);
    assert!(server.end());
}

/// Python's clients send the whole body before they read the answer.
#[test]
fn an_answer_is_read_by_clients_that_send_the_whole_body_first() {
    let server = Server::start(shared());
    let many = vec![b' '; 24 << 20];
    for (head, status) in [
        ("POST /tokenize HTTP/1.1\r\n", "413"),
        ("POST /v1/chat/completions HTTP/1.1\r\n", "413"),
        ("POST /nothing HTTP/1.1\r\n", "404"),
        ("POST /tokenize HTTP/1.1\r\norigin: http://elsewhere\r\n", "403"),
        ("DELETE /tokenize HTTP/1.1\r\n", "405"),
    ] {
        for chunked in [false, true] {
            let length = if chunked {
                "transfer-encoding: chunked".to_owned()
            } else {
                format!("content-length: {}", many.len())
            };
            let mut client =
                server.send(format!("{head}host: localhost\r\n{length}\r\n\r\n").as_bytes());
            if chunked {
                client.send(format!("{:x}\r\n", many.len()).as_bytes());
                client.send(&many);
                client.send(b"\r\n0\r\n\r\n");
            } else {
                client.send(&many);
            }
            let answer = client.rest();
            assert!(
                answer.starts_with(&format!("HTTP/1.1 {status} ")),
                "{head} {chunked}: {answer}"
            );
        }
    }
    assert!(server.end());
}

/// Without a key the state of the server is told, and nothing of its models; to nobody a path is.
#[tokio::test]
async fn readiness_tells_no_names_without_a_key_and_no_paths() {
    let spec = |name: &str| {
        ModelSpec::new(name, |_: &LoadProgress| Err(OpenError::from("/srv/models/a has b, c")))
    };
    let registry = ModelRegistry::new(vec![spec("a"), spec("b")]).expect("distinct names");
    let keys = ApiKeys::parse("first").expect("a key");
    let router = router(registry.clone(), ServeOptions::new().api_keys(keys));
    let failed = ask(&router, "first", "/v1/completions", &json!({"prompt": "a"})).await;
    assert_eq!(failed.status, 503);
    for path in ["/health", "/ready"] {
        let open = get(&router, path).await.json();
        assert_eq!(open.as_object().expect("an object").len(), 1, "{open}");
        let request = Request::get(path).header("x-api-key", "first").body(Body::empty());
        let report = send(&router, request.expect("a request")).await.json();
        let other = json!({"name": "a", "state": "unloaded", "error": "the last load failed: the log says why"});
        assert_eq!((&report["models"], &report["others"][0]), (&json!([]), &other));
    }
    registry.close();
}

/// Refusals of long fields are short.
#[tokio::test]
async fn errors_repeat_no_more_than_some_words_of_a_client() {
    let router = shared_router();
    let long = "é".repeat(50_000);
    let user = json!([{"role": "user", "content": "a"}]);
    let schema = json!({"type": "object", "properties": {long.clone(): {"type": long}}});
    for (path, body) in [
        ("/v1/completions", json!({"prompt": "a", "model": long})),
        ("/v1/completions", json!({"prompt": "a", "temperature": long})),
        ("/v1/completions", json!({"prompt": "a", "stop": [long, 1]})),
        ("/v1/completions", json!({"prompt": "a", "sampling_order": [long]})),
        ("/v1/completions", json!({"prompt": "a", "logit_bias": {long.clone(): 1}})),
        ("/v1/chat/completions", json!({"messages": [{"role": long, "content": "a"}]})),
        ("/v1/chat/completions", json!({"messages": user, "tool_choice": long})),
        ("/v1/chat/completions", json!({"messages": user, "response_format": {"type": long}})),
        (
            "/v1/chat/completions",
            json!({"messages": user, "response_format": {"type": "json_schema", "json_schema": {"schema": schema}}}),
        ),
        ("/v1/embeddings", json!({"input": "a", "pooling": long})),
        ("/v1/messages", json!({"messages": [{"role": long, "content": "a"}], "max_tokens": 1})),
        ("/v1/responses", json!({"input": [{"role": long, "content": "a"}]})),
        ("/api/chat", json!({"messages": user, "think": long})),
        ("/api/generate", json!({"prompt": "a", "format": long})),
        ("/api/generate", json!({"prompt": "a", "keep_alive": long})),
    ] {
        let answer = post(&router, path, &body).await;
        assert!(answer.status.is_client_error(), "{path}: {}", answer.status);
        let repeated = answer.text.matches('é').count();
        assert!(repeated <= 200, "{path}: {repeated} in {}", answer.text);
    }
    let path = format!("/{}", "a".repeat(50_000));
    assert!(get(&router, &path).await.text.len() < 1000);
    assert!(get(&router, &format!("/v1/models{path}")).await.text.len() < 1000);
}

/// A key unloads no model that other keys use.
#[tokio::test]
async fn a_key_unloads_what_it_alone_uses() {
    let opener = |_: &LoadProgress| Ok::<_, OpenError>(engine(|_| {}));
    let specs = ["a", "b"].map(|name| ModelSpec::new(name, opener));
    let registry = ModelRegistry::new(specs.into()).expect("distinct names");
    let registry = registry.keep_alive(KeepAlive::Unlimited);
    let keys = ApiKeys::parse("first\nsecond").expect("keys");
    let router = router(registry.clone(), ServeOptions::new().api_keys(keys));
    let text = |model: &str| json!({"model": model, "prompt": "A cat", "max_tokens": 1});
    for (key, model) in [("first", "a"), ("second", "a"), ("second", "b")] {
        ask(&router, key, "/v1/completions", &text(model)).await.json();
    }
    let loaded = async || {
        let request = Request::get("/ready").header("x-api-key", "first").body(Body::empty());
        send(&router, request.expect("a request")).await.json()["models"].clone()
    };
    assert_eq!(loaded().await, json!(["a", "b"]));
    for path in ["/api/generate", "/api/chat"] {
        let unload = json!({"model": "a", "keep_alive": 0});
        ask(&router, "second", path, &unload).await.json();
    }
    ask(&router, "second", "/api/embed", &json!({"model": "a", "input": "A cat", "keep_alive": 0}))
        .await
        .json();
    ask(&router, "second", "/api/generate", &json!({"model": "b", "keep_alive": 0})).await.json();
    while loaded().await != json!(["a"]) {
        tokio::task::yield_now().await;
    }
    registry.close();
}

/// In every API, whatever the field is.
#[tokio::test]
async fn bodies_of_many_small_values_are_not_parsed() {
    let router = shared_router();
    for piece in ["[0],", "{\"a\":1},", "[[[[]]]],"] {
        let many = format!("[{}0]", piece.repeat((7 << 20) / piece.len()));
        for path in [
            "/v1/chat/completions",
            "/v1/completions",
            "/v1/responses",
            "/v1/messages",
            "/v1/embeddings",
            "/tokenize",
            "/score",
            "/api/chat",
            "/api/embed",
        ] {
            let body = Body::from(format!("{{\"messages\": {many}}}"));
            let request = Request::post(path).body(body).expect("a request");
            let answer = send(&router, request).await;
            assert_eq!(answer.status, 413, "{path} {piece}");
            assert!(answer.text.contains("the values of the body take some"), "{}", answer.text);
        }
    }
    // As many tokens as a body has room for are read.
    let tokens = json!({"tokens": vec![12345; 1_200_000]}).to_string();
    let request = Request::post("/detokenize").body(Body::from(tokens)).expect("a request");
    assert_refused(&send(&router, request).await, 400, "context_length_exceeded");
}
