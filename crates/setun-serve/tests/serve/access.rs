//! Keys, hosts, origins and ids.

use axum::{
    body::Body,
    http::{Request, StatusCode},
};
use setun_serve::{ApiKeys, ServeOptions, router};

use crate::support::{Answer, send, shared};

async fn ask(options: &ServeOptions, method: &str, path: &str, headers: &[(&str, &str)]) -> Answer {
    let request = Request::builder().method(method).uri(path);
    let request =
        headers.iter().fold(request, |request, (name, value)| request.header(*name, *value));
    let router = router(shared(), options.clone());
    send(&router, request.body(Body::empty()).expect("a request")).await
}

#[tokio::test]
async fn keys_are_needed_but_for_the_state() {
    let keys = ApiKeys::parse("first\nsecond\n").expect("keys");
    let options = ServeOptions::new().api_keys(keys);
    let refused = ask(&options, "GET", "/v1/models", &[]).await;
    assert_eq!(refused.error()["code"], "invalid_api_key");
    assert_eq!(refused.status, StatusCode::UNAUTHORIZED);
    assert_eq!(refused.headers["www-authenticate"], "Bearer");
    let wrong = [("authorization", "Bearer third")];
    assert_eq!(ask(&options, "GET", "/metrics", &wrong).await.status, StatusCode::UNAUTHORIZED);
    let right = [("authorization", "Bearer second")];
    assert_eq!(ask(&options, "GET", "/v1/models", &right).await.status, StatusCode::OK);
    assert_eq!(ask(&options, "GET", "/health", &[]).await.status, StatusCode::OK);
}

#[tokio::test]
async fn a_page_of_another_name_or_origin_reaches_nothing() {
    let loopback = ServeOptions::new().bound_to("127.0.0.1:80".parse().expect("an address"));
    let host = |host| [("host", host)];
    let status =
        async |headers: &[(&str, &str)]| ask(&loopback, "GET", "/health", headers).await.status;
    assert_eq!(status(&host("localhost:80")).await, StatusCode::OK);
    assert_eq!(status(&host("example.org")).await, StatusCode::FORBIDDEN);
    let foreign = [("host", "localhost:80"), ("origin", "https://example.org")];
    assert_eq!(status(&foreign).await, StatusCode::FORBIDDEN);

    let preflight = [
        ("origin", "https://example.org"),
        ("access-control-request-method", "POST"),
        ("access-control-request-headers", "authorization,content-type"),
    ];
    let path = "/v1/chat/completions";
    let closed = ask(&ServeOptions::new(), "OPTIONS", path, &preflight).await;
    assert!(!closed.headers.contains_key("access-control-allow-origin"));
    let keys = ApiKeys::parse("first").expect("a key");
    let open = ServeOptions::new().allow_origin("https://example.org").api_keys(keys);
    let opened = ask(&open, "OPTIONS", path, &preflight).await;
    assert_eq!(opened.headers["access-control-allow-origin"], "https://example.org");
    assert_eq!(opened.headers["access-control-allow-headers"], "authorization,content-type");
}

#[tokio::test]
async fn an_answer_has_the_id_of_its_request() {
    let options = ServeOptions::new();
    let given = ask(&options, "GET", "/health", &[("x-request-id", "a-1")]).await;
    assert_eq!(given.headers["x-request-id"], "a-1");
    let long = "a".repeat(200);
    for headers in [&[][..], &[("x-request-id", &*long)]] {
        let made = ask(&options, "GET", "/nothing", headers).await;
        let id = made.headers["x-request-id"].to_str().expect("ASCII");
        assert!(id.starts_with("req_") && id.len() == 28, "{id}");
    }
}
