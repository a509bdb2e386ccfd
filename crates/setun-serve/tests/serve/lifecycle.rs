//! The end of a server, and its counters.

use axum::http::StatusCode;
use serde_json::json;
use setun_serve::{ServeOptions, router};

use crate::{
    cancellation::{Server, request},
    support::{Gate, engine, get, post},
};

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

#[tokio::test]
async fn tokens_of_answers_are_those_counted() {
    let router = router(engine(|_| {}), ServeOptions::new());
    let (mut prompts, mut texts, mut cached) = (0, 0, 0);
    for (prompt, n) in
        [("Once upon a time there was a cat", 1), ("Once upon a time there was a dog", 3)]
    {
        let body = json!({"prompt": prompt, "n": n, "max_tokens": 9, "temperature": 1});
        let usage = post(&router, "/v1/completions", &body).await.json()["usage"].clone();
        let count = |name: &str| usage[name].as_u64().expect("a number");
        prompts += count("prompt_tokens");
        texts += count("completion_tokens");
        assert_eq!(count("total_tokens"), count("prompt_tokens") + count("completion_tokens"));
        cached += usage["prompt_tokens_details"]["cached_tokens"].as_u64().expect("a number");
    }
    let page = get(&router, "/metrics").await;
    assert_eq!(page.status, StatusCode::OK);
    for (name, value) in [
        ("prompt_tokens_total", prompts),
        ("generation_tokens_total", texts),
        ("prefix_cache_queries_total", prompts),
        ("prefix_cache_hits_total", cached),
        // What was computed: the rest of the prompts, and all of each text but its last token.
        ("iteration_tokens_total_sum", prompts - cached + texts - 4),
        ("request_prompt_tokens_count", 2),
        ("request_generation_tokens_count", 4),
        ("time_to_first_token_seconds_count", 4),
        ("request_prefill_time_seconds_count", 4),
        ("request_decode_time_seconds_count", 4),
        ("request_queue_time_seconds_count", 4),
        ("inter_token_latency_seconds_count", texts - 4),
        ("e2e_request_latency_seconds_count", 2),
        ("num_requests_running", 0),
        ("kv_blocks_used", 0),
    ] {
        let line = format!("setun_{name}{{model_name=\"stories\"}} {value}\n");
        assert!(page.text.contains(&line), "{line} in {}", page.text);
    }
    let ends = ["stop", "length"].map(|reason| {
        let line = format!("finished_reason=\"{reason}\"}} ");
        let at = page.text.find(&line).expect("a line") + line.len();
        page.text[at..]
            .lines()
            .next()
            .and_then(|count| count.parse::<u64>().ok())
            .expect("a number")
    });
    assert_eq!(ends.iter().sum::<u64>(), 4);
}
