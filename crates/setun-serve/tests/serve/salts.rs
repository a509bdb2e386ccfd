//! Salts of the prefix cache in every API, by the cached tokens.

use axum::{Router, body::Body, http::Request};
use serde_json::{Value, json};
use setun_serve::{ApiKeys, ServeOptions, router};

use crate::support::{Answer, engine, send, with};

/// Longer than a block of the cache.
const TEXT: &str = "Once upon a time there was a little dog who liked to play in the park. He ran and ran, \
    and then he saw a big red ball. He wanted to play with the ball, but the ball was too big for him.";

async fn ask(router: &Router, key: &str, path: &str, body: &Value) -> Answer {
    let request = Request::post(path).header("authorization", format!("Bearer {key}"));
    send(router, request.body(Body::from(body.to_string())).expect("a request")).await
}

/// Tokens of a prompt that were cached.
async fn cached(router: &Router, key: &str, path: &str, body: &Value) -> u64 {
    let answer = ask(router, key, path, &with(body, &json!({"max_tokens": 1}))).await.json();
    answer["usage"]["prompt_tokens_details"]["cached_tokens"].as_u64().expect("a number")
}

fn router_with(options: ServeOptions) -> Router {
    let keys = ApiKeys::parse("first\nsecond").expect("keys");
    // Room for the prefixes of all requests.
    let engine = engine(|config| config.engine.prefix_positions = Some(4096));
    router(engine, options.api_keys(keys))
}

/// What a request of each API leaves in the cache is found with its salt alone.
#[tokio::test]
async fn every_api_takes_a_salt() {
    let router = router_with(ServeOptions::new());
    let messages = json!([{"role": "user", "content": TEXT}]);
    let chat = json!({"messages": messages, "max_tokens": 1});
    let (completions, chats) = ("/v1/completions", "/v1/chat/completions");
    for (path, body, beside) in [
        (completions, json!({"prompt": TEXT, "max_tokens": 1}), completions),
        ("/v1/embeddings", json!({"input": TEXT}), completions),
        ("/score", json!({"prompt": TEXT, "continuations": [" He", " She"]}), completions),
        ("/api/generate", json!({"prompt": TEXT, "raw": true, "stream": false}), completions),
        ("/api/embed", json!({"input": TEXT}), completions),
        (chats, chat.clone(), chats),
        ("/v1/messages", chat.clone(), chats),
        ("/v1/responses", json!({"input": TEXT, "max_output_tokens": 1}), chats),
        ("/api/chat", json!({"messages": messages, "stream": false}), chats),
    ] {
        let salt = json!({"cache_salt": path});
        let options = with(&salt, &json!({"num_predict": 1}));
        let is_ollamas = path.starts_with("/api/");
        let more = if is_ollamas { json!({"options": options}) } else { salt.clone() };
        ask(&router, "first", path, &with(&body, &more)).await.json();
        let same = if beside == chats { chat.clone() } else { json!({"prompt": TEXT}) };
        assert!(cached(&router, "second", beside, &with(&same, &salt)).await > 0, "{path}");
        let other = json!({"cache_salt": format!("not {path}")});
        assert_eq!(cached(&router, "first", beside, &with(&same, &other)).await, 0, "{path}");
    }
    for (path, body) in [(completions, json!({"prompt": TEXT})), (chats, chat)] {
        assert_eq!(cached(&router, "first", path, &body).await, 0, "without a salt");
    }
    for path in [completions, "/v1/embeddings", "/score"] {
        let empty =
            json!({"prompt": TEXT, "input": TEXT, "continuations": ["a"], "cache_salt": ""});
        let error = ask(&router, "first", path, &empty).await.error();
        assert_eq!([&error["param"], &error["code"]], ["cache_salt", "invalid_value"], "{error}");
    }
}

/// With a salt for each key a key finds its own prompts, and a salt of a request divides these.
#[tokio::test]
async fn keys_share_nothing_where_they_are_isolated() {
    let router = router_with(ServeOptions::new().isolate_keys(true));
    let mut found = vec![];
    for (key, salt) in [
        ("first", None),
        ("first", None),
        ("second", None),
        ("second", Some("a")),
        ("first", Some("a")),
        ("first", Some("a")),
        ("second", None),
    ] {
        let body = json!({"prompt": TEXT, "cache_salt": salt});
        found.push(cached(&router, key, "/v1/completions", &body).await);
    }
    let known = found[1];
    assert!(known > 0);
    assert_eq!(found, [0, known, 0, 0, 0, known, known]);
}
