//! Limits, each with its status, and connections that send slowly or never.

use std::time::Duration;

use axum::{Router, body::Body, http::Request};
use serde_json::{Value, json};
use setun_serve::{ApiKeys, Limits, ServeOptions, router};

use crate::{
    cancellation::Server,
    support::{Answer, Gate, post, send, shared, with},
    ui::listed,
};

fn limited(set: impl FnOnce(&mut Limits)) -> ServeOptions {
    let mut limits = Limits::default();
    set(&mut limits);
    ServeOptions::new().limits(limits)
}

#[track_caller]
fn assert_refused(answer: &Answer, status: u16, code: &str) {
    let error = answer.error();
    assert_eq!((answer.status.as_u16(), error["code"].as_str()), (status, Some(code)), "{error}");
}

#[tokio::test]
async fn each_key_has_its_own_requests() {
    let keys = ApiKeys::parse("first\nsecond").expect("keys");
    let options = limited(|limits| limits.requests_per_minute = Some(2)).api_keys(keys.clone());
    let router = router(shared(), options);
    let ask = async |key: &str| {
        let request = Request::post("/tokenize").header("authorization", format!("Bearer {key}"));
        send(&router, request.body(Body::from(r#"{"prompt": "a"}"#)).expect("a request")).await
    };
    for key in ["first", "second", "first", "second"] {
        ask(key).await.json();
    }
    let refused = ask("first").await;
    assert_refused(&refused, 429, "rate_limit_exceeded");
    let wait: u64 = refused.headers["retry-after-ms"].to_str().expect("ASCII").parse().expect("ms");
    assert!((1..=30_001).contains(&wait), "half a minute for one of two a minute: {wait}");
    keys.replace(&ApiKeys::parse("third").expect("a key"));
    assert_refused(&ask("second").await, 401, "invalid_api_key");
    ask("third").await.json();
}

#[tokio::test]
async fn prompts_outputs_and_streams_have_their_limits() {
    let options = limited(|limits| {
        (limits.prompt_tokens, limits.output_tokens) = (Some(6), Some(5));
        (limits.streams, limits.concurrent_requests) = (Some(1), Some(2));
    });
    let router = router(shared(), options);
    let ask = async |body: &Value| post(&router, "/v1/completions", body).await;
    let long = "a cat and a dog and a frog";
    assert_refused(&ask(&json!({"prompt": long})).await, 400, "context_length_exceeded");
    let embedded = post(&router, "/v1/embeddings", &json!({"input": long})).await;
    assert_refused(&embedded, 400, "context_length_exceeded");
    let more = json!({"prompt": "A cat", "max_tokens": 6});
    assert_refused(&ask(&more).await, 400, "invalid_value");
    // Of several names one holds, and each has the limit.
    for (path, options) in [
        ("/v1/completions", json!({"prompt": "A cat", "max_tokens": 6, "num_predict": 2})),
        ("/v1/completions", json!({"prompt": "A cat", "max_tokens": 2, "num_predict": 6})),
        (
            "/api/generate",
            json!({"prompt": "A cat", "options": {"max_tokens": 6, "num_predict": 2}}),
        ),
        (
            "/api/generate",
            json!({"prompt": "A cat", "options": {"n_predict": 6, "num_predict": 2}}),
        ),
    ] {
        let refused = post(&router, path, &options).await;
        assert_eq!(refused.status, 400, "{path}: {options}");
    }
    // Ollama's requests without a prompt load the model, or unload it, and have the same limit.
    for path in ["/api/chat", "/api/generate"] {
        for keep_alive in [json!("5m"), json!(0)] {
            let load =
                |tokens| json!({"options": {"num_predict": tokens}, "keep_alive": keep_alive});
            let refused = post(&router, path, &load(6)).await;
            assert_eq!(refused.status, 400, "{path}");
            assert_eq!(post(&router, path, &load(5)).await.status, 200, "{path}");
        }
    }
    let usage = ask(&json!({"prompt": "A cat", "min_tokens": 5})).await.json()["usage"].clone();
    assert_eq!(usage["completion_tokens"], 5, "the default is the largest");

    let streamed = json!({"prompt": "A cat", "stream": true});
    let first = open(&router, &streamed).await;
    assert_refused(&ask(&streamed).await, 429, "rate_limit_exceeded");
    // A body that never comes: its request is under way.
    let body = Body::from_stream(futures::stream::pending::<Result<Vec<u8>, std::io::Error>>());
    let unread = Request::post("/v1/completions").body(body).expect("a request");
    let mut unread = Box::pin(tower::ServiceExt::oneshot(router.clone(), unread));
    assert!(futures::poll!(&mut unread).is_pending());
    let other = json!({"prompt": "A cat"});
    assert_refused(&ask(&other).await, 429, "rate_limit_exceeded");
    drop(unread);
    ask(&other).await.json();
    drop(first);
    assert_eq!(ask(&streamed).await.chunks().len(), 6);
}

#[tokio::test]
async fn each_key_has_its_own_requests_under_way() {
    let keys = ApiKeys::parse("first\nsecond").expect("keys");
    let options = limited(|limits| limits.concurrent_requests = Some(1)).api_keys(keys);
    let router = router(shared(), options);
    let ask = async |key: &str| {
        let request = Request::post("/v1/completions")
            .header("authorization", format!("Bearer {key}"))
            .body(Body::from(json!({"prompt": "A cat", "stream": true}).to_string()));
        let answer = tower::ServiceExt::oneshot(router.clone(), request.expect("a request"));
        answer.await.expect("an answer")
    };
    let held = ask("first").await;
    assert_eq!(ask("first").await.status(), 429);
    let other = ask("second").await;
    assert_eq!((held.status().as_u16(), other.status().as_u16()), (200, 200));
    assert_eq!(ask("second").await.status(), 429);
    drop(held);
    assert_eq!(ask("first").await.status(), 200);
    assert_eq!(ask("second").await.status(), 429);
}

/// The gate holds the only place, so that no other request can start; one of two may wait for it.
#[tokio::test(flavor = "multi_thread")]
async fn a_request_that_waits_too_long_is_refused_and_others_wait() {
    let gate = Gate::default();
    let router = router(gate.engine(), ServeOptions::new());
    let begin = |more: Value| {
        let router = router.clone();
        let body = with(&json!({"prompt": "A cat", "min_tokens": 9, "max_tokens": 9}), &more);
        tokio::spawn(async move { post(&router, "/v1/completions", &body).await })
    };
    let first = begin(json!({"queue_timeout": 0}));
    gate.wait();
    let refused = [false, true].map(|stream| begin(json!({"queue_timeout": 0, "stream": stream})));
    let waits = begin(json!({"queue_timeout": 1e6}));
    listed(&router, 4).await;
    gate.open();
    for answer in refused {
        let answer = answer.await.expect("no panic");
        assert_refused(&answer, 429, "rate_limit_exceeded");
        assert!(answer.headers.contains_key("retry-after-ms"));
        assert!(answer.text.contains("within 0 s (`queue_timeout`)"), "{}", answer.text);
    }
    for answer in [first, waits] {
        let usage = answer.await.expect("no panic").json()["usage"].clone();
        assert_eq!(usage["completion_tokens"], 9, "it could start");
    }
}

/// An answer whose body is not read.
async fn open(router: &Router, body: &Value) -> axum::response::Response {
    let request = Request::post("/v1/completions").body(Body::from(body.to_string()));
    let request = request.expect("a request");
    tower::ServiceExt::oneshot(router.clone(), request).await.expect("an answer")
}

/// Headers that do not end and bodies that do not come end their connections; others go on.
#[test]
fn slow_headers_and_bodies_are_given_up() {
    let brief = Duration::from_millis(50);
    let start = |set: fn(&mut Limits, Duration)| {
        Server::start_within(shared(), move |limits| set(limits, brief))
    };
    let of_headers = start(|limits, brief| limits.header_timeout = brief);
    let mut silent = of_headers.send(b"");
    let mut half = of_headers.send(b"GET /health HTTP/1.1\r\nhost: loc");
    for text in [silent.text(), half.text()] {
        assert!(text.is_empty() || text.starts_with("HTTP/1.1 408 "), "{text}");
    }
    assert!(of_headers.end());
    // Whole headers may take their time here.
    let server = start(|limits, brief| limits.body_timeout = brief);
    let body = b"POST /tokenize HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\
                 content-length: 9\r\n\r\n{";
    let mut slow = server.send(body);
    let mut endless = server.send(
        b"POST /tokenize HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\
          transfer-encoding: chunked\r\n\r\n1\r\n{\r\n",
    );
    for text in [slow.text(), endless.text()] {
        assert!(text.starts_with("HTTP/1.1 408 ") && text.contains("request_timeout"), "{text}");
    }
    let get = b"GET /health HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n";
    assert!(server.send(get).text().starts_with("HTTP/1.1 200 "));
    assert!(server.end());
}

/// Each byte comes in time, and all of them would take hours.
#[test]
fn a_body_that_drips_is_given_up() {
    let set = |limits: &mut Limits| limits.body_timeout = Duration::from_millis(400);
    let server = Server::start_within(shared(), set);
    let mut client = server.send(
        b"POST /tokenize HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\
          content-length: 100000\r\n\r\n{",
    );
    let mut bytes = 0;
    while !client.is_answered(Duration::from_millis(20)) {
        client.send(b" ");
        bytes += 1;
        assert!(bytes < 5000, "it is still taken");
    }
    let text = client.rest();
    assert!(text.is_empty() || text.contains("the body came too slowly"), "{text}");
    assert!(server.end());
}

/// Its length is not told, and it never ends.
#[test]
fn an_endless_body_is_given_up_at_the_limit() {
    let server = Server::start(shared());
    let mut client = server.send(
        b"POST /tokenize HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\
          transfer-encoding: chunked\r\n\r\n1\r\n{\r\n",
    );
    server.wait_for(1);
    let piece = format!("10000\r\n{}\r\n", " ".repeat(0x1_0000));
    let mut pieces = 0;
    while server.lifecycle.requests() > 0 {
        client.send(piece.as_bytes());
        pieces += 1;
        assert!(pieces < 4000, "256 MiB were taken");
    }
    let text = client.rest();
    assert!(text.is_empty() || text.starts_with("HTTP/1.1 413 "), "{text}");
    assert!(server.end());
}
