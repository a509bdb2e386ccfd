//! Spans of requests as a collector gets them.

use std::sync::{Arc, Mutex};

use axum::{Router, body::Body, http::Request};
use serde_json::{Value, json};
use setun_serve::{ServeOptions, SpanExporter, router};

use crate::support::{MODEL, send, shared};

const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";

async fn ask(router: &Router, path: &str, body: &Value, flags: &str) {
    let parent = format!("00-{TRACE}-00f067aa0ba902b7-{flags}");
    let request = Request::post(path).header("traceparent", parent);
    send(router, request.body(Body::from(body.to_string())).expect("a request")).await;
}

/// The value of an attribute, whatever its type.
fn attribute<'a>(span: &'a Value, key: &str) -> &'a Value {
    let all = span["attributes"].as_array().expect("a list");
    let found = all.iter().find(|attribute| attribute["key"] == key);
    found.map_or(&Value::Null, |found| &found["value"])
}

#[tokio::test]
async fn each_request_that_runs_a_model_has_a_span_without_texts() {
    let sent = Arc::new(Mutex::new(vec![]));
    let bodies = Arc::clone(&sent);
    let exporter = SpanExporter::new(move |body| {
        bodies.lock().expect("no panic").push(body);
        Ok(())
    });
    let exporter = exporter.expect("a thread");
    let router = router(shared(), ServeOptions::new().spans(exporter.clone()));
    let text = json!({"prompt": "A secret cat", "max_tokens": 3, "min_tokens": 3, "n": 2,
        "temperature": 0.9, "seed": 5, "stop": ["secret"], "stream": true});
    ask(&router, "/v1/completions", &text, "01").await;
    let chat = json!({"messages": [{"role": "user", "content": "A secret cat"}], "max_tokens": 2});
    ask(&router, "/v1/chat/completions", &chat, "01").await;
    ask(&router, "/v1/chat/completions", &chat, "00").await;
    ask(&router, "/api/embed", &json!({"input": "A secret cat"}), "01").await;
    let far = json!({"prompt": "secret ".repeat(9000)});
    ask(&router, "/v1/completions", &far, "01").await;
    ask(&router, "/tokenize", &json!({"prompt": "A secret cat"}), "01").await;
    exporter.close();

    let sent = sent.lock().expect("no panic");
    let bodies: Vec<Value> =
        sent.iter().map(|body| serde_json::from_slice(body).expect("JSON")).collect();
    assert!(sent.iter().all(|body| !String::from_utf8_lossy(body).contains("secret")));
    let spans = bodies.iter().map(|body| &body["resourceSpans"][0]["scopeSpans"][0]["spans"]);
    let spans: Vec<_> = spans.flat_map(|spans| spans.as_array().expect("spans")).collect();
    let names: Vec<_> = spans.iter().map(|span| span["name"].as_str().expect("a name")).collect();
    let operations = ["text_completion", "chat", "embeddings", "text_completion"];
    assert_eq!(names, operations.map(|operation| format!("{operation} {MODEL}")));
    for span in &spans {
        assert_eq!((&span["traceId"], &span["kind"]), (&json!(TRACE), &json!(2)));
        assert_eq!(span["parentSpanId"], "00f067aa0ba902b7");
        assert_eq!(span["spanId"].as_str().map(str::len), Some(16));
        let time = |name: &str| span[name].as_str().and_then(|time| time.parse::<u64>().ok());
        assert!(time("startTimeUnixNano") <= time("endTimeUnixNano"), "{span}");
    }
    let reasons = ["length", "length"].map(|reason| json!({"stringValue": reason}));
    for (key, value) in [
        ("gen_ai.operation.name", json!({"stringValue": "text_completion"})),
        ("gen_ai.provider.name", json!({"stringValue": "setun"})),
        ("gen_ai.request.temperature", json!({"doubleValue": 0.9})),
        ("gen_ai.request.seed", json!({"intValue": "5"})),
        ("gen_ai.request.choice.count", json!({"intValue": "2"})),
        ("gen_ai.request.stream", json!({"boolValue": true})),
        ("gen_ai.response.finish_reasons", json!({"arrayValue": {"values": reasons}})),
        ("gen_ai.usage.output_tokens", json!({"intValue": "6"})),
    ] {
        assert_eq!(attribute(spans[0], key), &value, "{key}");
    }
    assert!(attribute(spans[0], "gen_ai.response.time_to_first_chunk")["doubleValue"].is_number());
    assert_eq!(attribute(spans[1], "gen_ai.usage.output_tokens")["intValue"], "2");
    assert_ne!(attribute(spans[2], "gen_ai.usage.input_tokens")["intValue"], "0");
    assert_eq!(attribute(spans[3], "error.type")["stringValue"], "context_length_exceeded");
    assert_eq!(spans[3]["status"]["code"], 2);
}
