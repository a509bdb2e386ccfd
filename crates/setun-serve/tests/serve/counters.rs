//! Counters against the usage of answers.

use axum::Router;
use serde_json::{Value, json};
use setun_serve::{LoadProgress, ModelRegistry, ModelSpec, OpenError, ServeOptions, router};

use crate::{
    models::metric,
    support::{engine, get, post, with},
};

/// What answers of a model say of their tokens, summed.
#[derive(Debug, Default)]
struct Sums {
    /// Prompts, and those of them that texts follow.
    prompts: u64,
    continued: u64,
    texts: u64,
    prompt_tokens: u64,
    queried_tokens: u64,
    cached_tokens: u64,
    text_tokens: u64,
}

/// Every API and two models, in turns: what is counted is what the answers say, exactly.
#[tokio::test]
async fn tokens_of_answers_are_those_counted() {
    let open = |_: &LoadProgress| {
        Ok::<_, OpenError>(engine(|config| config.engine.operation_times = true))
    };
    let registry = ModelRegistry::new(["a", "b"].map(|name| ModelSpec::new(name, open)).into());
    let registry = registry.expect("distinct names");
    let router = router(registry.clone(), ServeOptions::new());
    let mut sums = [Sums::default(), Sums::default()];
    for (number, (path, body, prompts, texts)) in requests().into_iter().enumerate() {
        // The first model has one request more of each three.
        let model = usize::from(number % 3 == 2);
        let (name, sums) = (["a", "b"][model], &mut sums[model]);
        let body = with(&body, &json!({"model": name}));
        ask(&router, path, &body, name, (prompts, texts), sums).await;
    }
    let page = get(&router, "/metrics").await.text;
    for (name, sums) in ["a", "b"].iter().zip(&sums) {
        check(&page, name, sums);
        check_operations(&page, name);
    }
    registry.close();
}

/// Requests with the numbers of their prompts and texts. Prompts begin as others do.
fn requests() -> Vec<(&'static str, Value, u64, u64)> {
    let text = "Once upon a time there was a cat that had a red ball and a big dog".repeat(3);
    let messages = json!([{"role": "user", "content": text}]);
    let completion = json!({"prompt": text, "max_tokens": 9, "temperature": 1});
    let lists = json!({"prompt": [text, "A dog"], "n": 3, "max_tokens": 7, "temperature": 1});
    let chat = json!({"messages": messages, "max_tokens": 8});
    let response = json!({"input": text, "max_output_tokens": 8});
    let options = json!({"num_predict": 5});
    let usage = json!({"stream": true, "stream_options": {"include_usage": true}});
    let (stream, whole) = (json!({"stream": true}), json!({"stream": false}));
    let generate = json!({"prompt": text, "raw": true, "options": options});
    let talk = json!({"messages": messages, "options": options});
    let mut all = vec![];
    for _ in 0..3 {
        all.extend([
            ("/v1/completions", completion.clone(), 1, 1),
            ("/v1/completions", with(&lists, &usage), 2, 6),
            ("/v1/chat/completions", with(&chat, &json!({"n": 2})), 1, 2),
            ("/v1/chat/completions", with(&chat, &usage), 1, 1),
            ("/v1/responses", response.clone(), 1, 1),
            ("/v1/responses", with(&response, &stream), 1, 1),
            ("/v1/messages", chat.clone(), 1, 1),
            ("/v1/messages", with(&chat, &stream), 1, 1),
            ("/api/generate", generate.clone(), 1, 1),
            ("/api/generate", with(&generate, &whole), 1, 1),
            ("/api/chat", talk.clone(), 1, 1),
            ("/v1/embeddings", json!({"input": [text, "A dog"]}), 2, 0),
            ("/v1/embeddings", json!({"input": text, "pooling": "mean"}), 1, 0),
            ("/api/embed", json!({"input": text}), 1, 0),
        ]);
    }
    all
}

async fn ask(
    router: &Router,
    path: &str,
    body: &Value,
    model: &str,
    (prompts, texts): (u64, u64),
    sums: &mut Sums,
) {
    let answer = post(router, path, body).await;
    assert!(answer.status.is_success(), "{}", answer.text);
    let usage = usage(&answer.text);
    let number = |names: &[&str]| names.iter().find_map(|name| usage.pointer(name)?.as_u64());
    let rest = number(&["/cache_read_input_tokens"]);
    let input = ["/prompt_tokens", "/input_tokens", "/prompt_eval_count"];
    let prompt_tokens = number(&input).expect("tokens of the prompt") + rest.unwrap_or(0);
    let details = ["prompt_tokens_details", "input_tokens_details"];
    let details = details.map(|name| format!("/{name}/cached_tokens"));
    let cached = rest.or_else(|| number(&details.each_ref().map(String::as_str)));
    let text_tokens = number(&["/completion_tokens", "/output_tokens", "/eval_count"]);
    sums.prompts += prompts;
    sums.texts += texts;
    sums.prompt_tokens += prompt_tokens;
    sums.text_tokens += text_tokens.unwrap_or(0);
    // Some APIs do not report cached tokens. The counter has those of every request.
    let page = get(router, "/metrics").await.text;
    let hits = metric(&page, "prefix_cache_hits_total", model);
    assert!(cached.is_none_or(|cached| sums.cached_tokens + cached == hits), "{path}: {hits}");
    sums.cached_tokens = hits;
    if body["pooling"] != "mean" {
        sums.queried_tokens += prompt_tokens;
    }
    if texts > 0 {
        sums.continued += prompts;
        assert!(text_tokens.is_some_and(|tokens| tokens >= texts), "{}", answer.text);
    }
}

/// The last usage of an answer: in its events, in its lines, or in the whole.
fn usage(answer: &str) -> Value {
    let values = answer.lines().filter_map(|line| {
        serde_json::from_str::<Value>(line.strip_prefix("data: ").unwrap_or(line)).ok()
    });
    let mut found = values.filter_map(|value| {
        if value.get("prompt_eval_count").is_some() {
            return Some(value);
        }
        let places = ["/usage", "/response/usage"];
        let usage = places.iter().find_map(|place| value.pointer(place));
        usage.filter(|usage| usage.is_object()).cloned()
    });
    found.next_back().unwrap_or_else(|| panic!("no usage in {answer}"))
}

/// The times of operations are those of steps: no more, and each phase has its own.
fn check_operations(page: &str, model: &str) {
    let of_model = format!("{{model_name=\"{model}\"");
    let lines: Vec<_> = page.lines().filter(|line| line.contains(&of_model)).collect();
    let sum = |name: &str, labels: &[&str]| -> f64 {
        let is_one = |line: &&&str| {
            line.starts_with(name) && labels.iter().all(|label| line.contains(label))
        };
        let value = |line: &&str| line.rsplit(' ').next().expect("a value").parse::<f64>();
        lines.iter().filter(is_one).map(|line| value(line).expect("a number")).sum()
    };
    let name = "setun_operation_time_seconds_total{";
    let (all, steps) = (sum(name, &[]), sum("setun_step_time_seconds_sum{", &[]));
    assert!(all > 0.0 && all <= steps + 1e-6, "{all} of {steps}");
    for phase in ["phase=\"prefill\"", "phase=\"decode\""] {
        for operation in ["attention\"", "ternary_matmul\",role=\"down\"", "gate\"", "other\""] {
            let labels = [phase, &format!("operation=\"{operation}")];
            assert!(sum(name, &labels) > 0.0, "{labels:?}: {page}");
        }
    }
}

fn check(page: &str, model: &str, sums: &Sums) {
    let Sums { prompts, continued, texts, prompt_tokens, queried_tokens, .. } = *sums;
    let (cached, text_tokens) = (sums.cached_tokens, sums.text_tokens);
    assert!(cached > 0 && queried_tokens < prompt_tokens, "{sums:?}");
    for (name, value) in [
        ("prompt_tokens_total", prompt_tokens),
        ("generation_tokens_total", text_tokens),
        ("prefix_cache_queries_total", queried_tokens),
        ("prefix_cache_hits_total", cached),
        // What was computed: the rest of the prompts, and all of each text but its last token.
        ("iteration_tokens_total_sum", prompt_tokens - cached + text_tokens - texts),
        ("request_prompt_tokens_count", prompts),
        ("request_prompt_tokens_sum", prompt_tokens),
        ("request_generation_tokens_count", texts),
        ("request_generation_tokens_sum", text_tokens),
        ("time_to_first_token_seconds_count", texts),
        ("request_prefill_time_seconds_count", texts),
        ("request_decode_time_seconds_count", texts),
        // With the prompts that become vectors.
        ("request_queue_time_seconds_count", texts + prompts - continued),
        ("inter_token_latency_seconds_count", text_tokens - texts),
        ("e2e_request_latency_seconds_count", continued),
        ("num_requests_running", 0),
        ("num_requests_waiting", 0),
        ("kv_blocks_used", 0),
    ] {
        assert_eq!(metric(page, name, model), value, "{name} of {model}: {sums:?}");
    }
    let ends = ["stop", "length"].map(|reason| {
        let line = format!("{{model_name=\"{model}\",finished_reason=\"{reason}\"}} ");
        let at = page.find(&line).expect("a line") + line.len();
        page[at..].lines().next().and_then(|count| count.parse::<u64>().ok()).expect("a number")
    });
    assert_eq!(ends.iter().sum::<u64>(), texts);
}
