//! Requests that are refused.

use axum::{body::Body, http::Request};
use serde_json::json;
use setun_serve::{ServeOptions, router};

use crate::support::{engine, get, post, send, shared, shared_router};

/// What is wrong is said by the field, in one shape, and never with a status of the server's.
#[tokio::test]
async fn faults_of_requests_name_their_field() {
    let router = shared_router();
    let (chat, completions) = ("/v1/chat/completions", "/v1/completions");
    let user = json!([{"role": "user", "content": "a"}]);
    let long = "a dog ".repeat(4000);
    for (path, body, status, param, code) in [
        (chat, json!({}), 400, "messages", "missing_required_parameter"),
        (chat, json!({"messages": "a"}), 400, "messages", "invalid_type"),
        (chat, json!({"messages": []}), 400, "messages", "invalid_value"),
        (chat, json!({"messages": [1]}), 400, "messages[0]", "invalid_type"),
        (chat, json!({"messages": [{"role": "user"}]}), 400, "messages", "invalid_value"),
        (chat, json!({"messages": user, "model": "x"}), 404, "model", "model_not_found"),
        (chat, json!({"messages": user, "model": 1}), 400, "model", "invalid_type"),
        (chat, json!({"messages": user, "stream": "yes"}), 400, "stream", "invalid_type"),
        (chat, json!({"messages": user, "n": 0}), 400, "n", "invalid_value"),
        (chat, json!({"messages": user, "n": 100}), 400, "n", "invalid_value"),
        (chat, json!({"messages": user, "temperature": -1}), 400, "temperature", "invalid_value"),
        (chat, json!({"messages": user, "top_logprobs": 2}), 400, "top_logprobs", "invalid_value"),
        (chat, json!({"messages": user, "stop": ""}), 400, "stop", "invalid_value"),
        (
            chat,
            json!({"messages": user, "logit_bias": {"99999": 1}}),
            400,
            "logit_bias",
            "invalid_value",
        ),
        (
            chat,
            json!({"messages": user, "functions": []}),
            400,
            "functions",
            "unsupported_parameter",
        ),
        (chat, json!({"messages": user, "tools": [{}]}), 400, "tools[0].type", "invalid_value"),
        (
            chat,
            json!({"messages": user, "tool_choice": "required"}),
            400,
            "tool_choice",
            "invalid_value",
        ),
        (
            chat,
            json!({"messages": user, "response_format": {"type": "json_schema", "json_schema":
                {"schema": {"not": {}}}}}),
            400,
            "response_format",
            "invalid_value",
        ),
        (
            chat,
            json!({"messages": [{"role": "user", "content": long}]}),
            400,
            "messages",
            "context_length_exceeded",
        ),
        (completions, json!({"prompt": long}), 400, "prompt", "context_length_exceeded"),
        (completions, json!({"prompt": {}}), 400, "prompt", "invalid_type"),
        (completions, json!({"prompt": [1, "a"]}), 400, "prompt[1]", "invalid_type"),
        (completions, json!({"prompt": [99999]}), 400, "prompt", "invalid_value"),
        (
            completions,
            json!({"prompt": "a", "suffix": "b"}),
            400,
            "suffix",
            "unsupported_parameter",
        ),
        (completions, json!({"prompt": "a", "logprobs": 50}), 400, "logprobs", "invalid_value"),
        ("/score", json!({"prompt": "a"}), 400, "continuations", "missing_required_parameter"),
        (
            "/score",
            json!({"prompt": "a", "continuations": [1]}),
            400,
            "continuations[0]",
            "invalid_type",
        ),
        (
            "/score",
            json!({"prompt": long, "continuations": ["a"]}),
            400,
            "prompt",
            "context_length_exceeded",
        ),
        (
            "/v1/embeddings",
            json!({"input": "a", "dimensions": 3}),
            400,
            "dimensions",
            "unsupported_parameter",
        ),
        ("/detokenize", json!({"tokens": ["a"]}), 400, "tokens[0]", "invalid_type"),
    ] {
        let answer = post(&router, path, &body).await;
        let error = answer.error();
        let found = (answer.status.as_u16(), error["param"].as_str(), error["code"].as_str());
        assert_eq!(found, (status, Some(param), Some(code)), "{body}: {error}");
    }
}

/// Names of models are compared with those of the registry; no file has them.
#[tokio::test]
async fn no_name_reaches_the_disk() {
    let router = shared_router();
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml");
    for name in
        ["../../Cargo.toml", file, "file:///etc/passwd", "~/.ssh/id_rsa", "stories/../x", "a\0b"]
    {
        let user = json!([{"role": "user", "content": "a"}]);
        for path in ["/v1/chat/completions", "/v1/messages", "/api/chat"] {
            let body = json!({"model": name, "messages": user, "max_tokens": 1});
            assert_eq!(post(&router, path, &body).await.status, 404, "{path}: {name}");
        }
        for path in ["/v1/completions", "/v1/responses", "/v1/embeddings", "/tokenize", "/api/show"]
        {
            let body = json!({"model": name, "prompt": "a", "input": "a", "max_tokens": 1});
            assert_eq!(post(&router, path, &body).await.status, 404, "{path}: {name}");
        }
    }
    for name in ["..%2f..%2fCargo.toml", "%2e%2e/%2e%2e/Cargo.toml", "../Cargo.toml", "%00"] {
        for path in ["/v1/models/", "/ui/"] {
            let answer = get(&router, &format!("{path}{name}")).await;
            assert_eq!(answer.status, 404, "{path}{name}: {}", answer.text);
            assert!(!answer.text.contains("[package]"));
        }
    }
}

#[tokio::test]
async fn faults_of_http_have_the_same_shape() {
    let limited = router(shared(), ServeOptions::new().max_body_bytes(20));
    let routes = shared_router();
    let send_text = async |router, text: &str| {
        let request = Request::post("/v1/completions").body(Body::from(text.to_owned()));
        send(router, request.expect("a request")).await
    };
    for (answer, status, code) in [
        (get(&routes, "/v1/nothing").await, 404, "unknown_url"),
        (get(&routes, "/v1/completions").await, 405, "method_not_allowed"),
        (send_text(&routes, "{").await, 400, "invalid_json"),
        (send_text(&routes, "[]").await, 400, "invalid_json"),
        (send_text(&routes, &"[".repeat(9999)).await, 400, "invalid_json"),
        (send_text(&limited, r#"{"prompt": "abcdefgh"}"#).await, 413, "request_too_large"),
    ] {
        let error = answer.error();
        assert_eq!((answer.status.as_u16(), error["code"].as_str()), (status, Some(code)));
    }
}

/// A stream that nobody reads holds its place, and its generation does not run on.
#[tokio::test]
async fn a_full_queue_says_when_to_come_again_and_slow_readers_stop_no_other() {
    let engine = engine(|config| {
        config.engine.max_concurrent = 1;
        config.engine.queue = 1;
        config.engine.buffer = 1;
    });
    let router = router(engine.clone(), ServeOptions::new());
    let body = json!({"prompt": "A cat", "min_tokens": 60, "max_tokens": 60, "stream": true});
    let unread = |body: &serde_json::Value| {
        let request = Request::post("/v1/completions").body(Body::from(body.to_string()));
        tower::ServiceExt::oneshot(router.clone(), request.expect("a request"))
    };
    let first = unread(&body).await.expect("an answer");
    let second = unread(&body).await.expect("an answer: the first has made room");
    let third = post(&router, "/v1/completions", &body).await;
    assert_eq!(third.error()["code"], "rate_limit_exceeded");
    assert_eq!(
        (third.status.as_u16(), &third.headers["retry-after-ms"]),
        (429, &"1000".parse().expect("a value"))
    );
    let texts =
        [first, second].map(|response| axum::body::to_bytes(response.into_body(), usize::MAX));
    let mut ends = vec![];
    for text in texts {
        let text = String::from_utf8(text.await.expect("a body").to_vec()).expect("UTF-8");
        assert!(text.ends_with("data: [DONE]\n\n"), "{text}");
        // Ids of answers differ.
        ends.push(
            text.split("\"text\":")
                .skip(1)
                .map(|piece| piece.split(',').next().unwrap_or_default().to_owned())
                .collect::<Vec<_>>(),
        );
    }
    assert_eq!(ends[0], ends[1]);
}
