//! The end of a server and of an engine.

use std::{net::TcpStream, time::Duration};

use axum::http::StatusCode;
use serde_json::json;
use setun::{
    GenerateOptions, LogitsProcessor,
    text::{Candidates, SharedProcessor, Step, TextError},
};
use setun_serve::{ServeOptions, router};
use tokio::task::yield_now;

use crate::{
    cancellation::{Server, request},
    support::{Gate, engine, get, post, with},
    wait::wait_for,
};

/// A step of the sampler with a defect.
struct Broken;

impl LogitsProcessor for Broken {
    fn process(&self, _: &mut Candidates, _: &Step<'_>) -> Result<(), TextError> {
        panic!("a defect")
    }
}

#[tokio::test]
async fn an_engine_that_has_ended_is_told_by_both_probes() {
    let broken = engine(|config| {
        let broken = [SharedProcessor::new(Broken)];
        config.generation = GenerateOptions::new().logits_processors(broken);
    });
    let router = router(broken, ServeOptions::new());
    assert_eq!(get(&router, "/health").await.status, StatusCode::OK);
    let request = json!({"prompt": "A cat", "max_tokens": 2});
    let answer = post(&router, "/v1/completions", &request).await;
    assert_eq!(answer.status, StatusCode::SERVICE_UNAVAILABLE, "{}", answer.text);
    for path in ["/health", "/ready"] {
        // Its thread may be about to end.
        while get(&router, path).await.status == StatusCode::OK {
            yield_now().await;
        }
        assert_eq!(get(&router, path).await.status, StatusCode::SERVICE_UNAVAILABLE);
    }
}

#[test]
fn streams_end_whole_and_new_requests_are_refused() {
    let gate = Gate::default();
    let server = Server::start(gate.engine());
    let body = json!({"prompt": "A cat", "max_tokens": 20, "min_tokens": 20, "stream": true});
    let mut stream = server.send(&request("/v1/completions", &body));
    gate.wait();
    server.lifecycle.drain();
    let refused = server.send(&request("/v1/completions", &body)).text();
    assert!(refused.starts_with("HTTP/1.1 503 "), "{refused}");
    assert!(refused.contains("\"shutting_down\""), "{refused}");
    gate.open();
    let text = stream.text();
    assert!(
        text.contains("\"finish_reason\":\"length\"") && text.contains("data: [DONE]"),
        "{text}"
    );
    assert!(server.end(), "all requests have ended");
}

/// One stream is in the middle of its text, and one request waits for its turn.
#[test]
fn what_has_not_ended_within_the_grace_time_ends_with_an_error() {
    let gate = Gate::default();
    let server = Server::start_for(gate.engine(), Duration::ZERO, |_| {});
    let body = json!({"prompt": "A cat", "max_tokens": 20, "min_tokens": 20});
    let stream = with(&body, &json!({"stream": true}));
    let mut stream = server.send(&request("/v1/completions", &stream));
    gate.wait();
    let mut waiting = server.send(&request("/v1/completions", &body));
    server.wait_for(2);
    server.lifecycle.drain();
    // The port is closed after the texts were cut off, which the gate holds.
    wait_for("a closed port", || TcpStream::connect(server.address).is_err());
    gate.open();
    let text = stream.text();
    let (_, end) = text.rsplit_once("data: ").expect("an event");
    assert!(text.starts_with("HTTP/1.1 200 ") && end.contains("\"shutting_down\""), "{text}");
    let refused = waiting.text();
    assert!(refused.starts_with("HTTP/1.1 503 "), "{refused}");
    assert!(!server.end(), "not all requests ended by themselves");
}
