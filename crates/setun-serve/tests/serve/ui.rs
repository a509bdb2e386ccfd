//! The page, the requests that it lists and cancels, and metrics while a step runs.

use axum::{
    Router,
    body::Body,
    http::{Request, StatusCode},
};
use serde_json::{Value, json};
use setun_serve::{ApiKeys, ServeOptions, router};
use tokio::task::{JoinHandle, yield_now};
use tower::ServiceExt;

use crate::support::{Answer, Gate, get, post, send, shared};

/// Begins a text that ends only when it is cancelled.
fn begin(router: &Router) -> JoinHandle<Answer> {
    let router = router.clone();
    let body = json!({"prompt": "A cat", "min_tokens": 300, "max_tokens": 300});
    tokio::spawn(async move { post(&router, "/v1/completions", &body).await })
}

/// The list, once it has this many requests.
pub(crate) async fn listed(router: &Router, count: usize) -> Vec<Value> {
    loop {
        let list = get(router, "/ui/requests").await.json();
        let data = list["data"].as_array().expect("a list");
        if data.len() == count {
            return data.clone();
        }
        yield_now().await;
    }
}

async fn cancel(router: &Router, id: &str) -> Answer {
    let request = Request::delete(format!("/ui/requests/{id}")).body(Body::empty());
    send(router, request.expect("a request")).await
}

/// The gate holds the step of the first request's third token.
#[tokio::test(flavor = "multi_thread")]
async fn requests_are_listed_and_cancelled_while_a_step_runs() {
    let gate = Gate::default();
    let router = router(gate.engine(), ServeOptions::new());
    let first = begin(&router);
    gate.wait();
    listed(&router, 1).await; // a text may be under way before its request is listed
    let second = begin(&router);
    let requests = listed(&router, 2).await;
    let field = |name: &str| [&requests[0][name], &requests[1][name]].map(Clone::clone);
    assert_eq!(field("state"), ["running", "waiting"]);
    assert_eq!(field("tokens"), [2, 0]);
    assert_eq!(field("api"), ["/v1/completions", "/v1/completions"]);
    assert!(requests[0].get("prompt").is_none());
    let metrics = get(&router, "/metrics").await.text;
    assert!(
        metrics.contains("setun_num_requests_running{model_name=\"stories\"} 1\n"),
        "{metrics}"
    );
    let ids = field("id").map(|id| id.as_str().expect("an id").to_owned());
    for id in &ids {
        assert_eq!(cancel(&router, id).await.json(), json!({"id": id, "cancelled": true}));
    }
    gate.open();
    for (answer, most) in [(first, 4), (second, 0)] {
        let answer = answer.await.expect("no panic").json();
        let tokens = answer["usage"]["completion_tokens"].as_u64().expect("a number");
        assert!(tokens <= most, "{tokens} tokens");
    }
    assert!(listed(&router, 0).await.is_empty());
    assert_eq!(cancel(&router, &ids[0]).await.error()["code"], "request_not_found");
}

#[tokio::test]
async fn the_page_needs_no_key_and_runs_its_own_code_alone() {
    let keys = ApiKeys::parse("first").expect("a key");
    let router = router(shared(), ServeOptions::new().api_keys(keys));
    assert_eq!(get(&router, "/ui/requests").await.status, StatusCode::UNAUTHORIZED);
    assert_eq!(cancel(&router, "a").await.status, StatusCode::UNAUTHORIZED);
    assert_eq!(get(&router, "/ui").await.error()["code"], "not_acceptable");
    let request = Request::get("/ui").header("accept-encoding", "br, gzip;q=0.5");
    let page = router.oneshot(request.body(Body::empty()).expect("a request")).await;
    let page = page.expect("an answer");
    assert_eq!(page.status(), StatusCode::OK);
    assert_eq!(page.headers()["content-encoding"], "gzip");
    let policy = page.headers()["content-security-policy"].to_str().expect("ASCII");
    assert!(policy.starts_with("default-src 'none'; script-src 'sha256-"), "{policy}");
    assert!(!policy.contains("unsafe"), "{policy}");
}
