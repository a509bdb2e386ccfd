//! The page of capabilities against routes and parameters.

use axum::{
    body::Body,
    http::{Request, StatusCode},
};
use serde_json::json;

use setun_serve::ServeOptions;

use crate::support::{post, router_with_files, send, shared_router, with};

const PAGE: &str = include_str!("../../../../docs/capabilities.md");

/// The names in the column of the server: routes with their method, and parameters.
fn names() -> Vec<&'static str> {
    let rows = PAGE.lines().filter(|line| line.starts_with("| ") && !line.starts_with("| capab"));
    let cells = rows.filter_map(|row| row.trim_matches('|').split(" | ").nth(4));
    cells.flat_map(|cell| cell.split('`').skip(1).step_by(2)).collect()
}

#[tokio::test]
async fn every_route_is_there() {
    let (router, _folder) = router_with_files(ServeOptions::new());
    let names = names();
    let routes: Vec<_> = names.iter().filter_map(|name| name.split_once(" /")).collect();
    for (method, path) in &routes {
        let request = Request::builder().method(*method).uri(format!("/{path}"));
        let answer = send(&router, request.body(Body::from("{}")).expect("a request")).await;
        assert_ne!(answer.status, StatusCode::METHOD_NOT_ALLOWED, "{method} /{path}");
        assert!(!answer.text.contains("unknown_url"), "{method} /{path}: {}", answer.text);
        // Of these the model or the request is what is not found.
        let is_of_one = path.ends_with("/NAME") || path.ends_with("/ID");
        assert_eq!(answer.status == StatusCode::NOT_FOUND, is_of_one, "{method} /{path}");
    }
    assert!(routes.len() > 15, "{routes:?}");
}

/// A parameter that is read refuses a value of the wrong type by its name; others are ignored.
#[tokio::test]
async fn every_parameter_is_read() {
    let router = shared_router();
    let chat = json!({"messages": [{"role": "user", "content": "a"}], "max_tokens": 1});
    let bodies = [
        ("/v1/chat/completions", chat),
        ("/v1/completions", json!({"prompt": "a", "max_tokens": 1})),
    ];
    let parameters: Vec<_> = names().into_iter().filter(|name| !name.contains(' ')).collect();
    for name in &parameters {
        let mut is_read = false;
        for (path, body) in &bodies {
            let answer = post(&router, path, &with(body, &json!({*name: [[{}]]}))).await;
            is_read |= answer.status == StatusCode::BAD_REQUEST
                && answer.error()["param"].as_str().is_some_and(|param| param.starts_with(name));
        }
        assert!(is_read, "{name}");
    }
    assert!(parameters.len() > 20, "{parameters:?}");
}
