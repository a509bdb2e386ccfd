//! Scores of small tasks, asked for as lm-evaluation-harness does, against those of transformers.

use serde::Deserialize;
use serde_json::{Value, json};
use setun::CacheType;
use setun_serve::{ServeOptions, router};

use crate::support::{MODEL, engine, post};

/// Requests of the harness and what it computed from transformers' answers, by
/// `tests/fixtures/evaluation/make.py`.
const SCORES: &str = include_str!("../../../../tests/fixtures/evaluation/scores.json");

/// Difference of a token's log-probability, of most requests. In the others transformers' float32 takes
/// another int8 code beyond a tie.
const TOLERANCE: f64 = 2e-4;

/// The same of any request.
const FLIPPED: f64 = 0.1;

#[derive(Deserialize)]
struct Scores {
    requests: Vec<Request>,
    metrics: Value,
}

/// Tokens of a continuation after those of a context, of which the first is the tokenizer's.
#[derive(Deserialize)]
struct Request {
    task: String,
    doc: usize,
    context: Vec<u32>,
    continuation: Vec<u32>,
    log_likelihood: f64,
    is_greedy: bool,
}

/// The score of a continuation, as `local-completions` reads it.
async fn ask(router: &axum::Router, context: &[u32], continuation: &[u32]) -> (f64, bool) {
    let prompt = [context, continuation].concat();
    let body = json!({
        "model": MODEL, "prompt": [prompt], "temperature": 0, "max_tokens": 1, "logprobs": 1,
        "seed": 1234, "echo": true,
    });
    let answer = post(router, "/v1/completions", &body).await.json();
    let logprobs = &answer["choices"][0]["logprobs"];
    let list = |name: &str| logprobs[name].as_array().expect(name).clone();
    let (tokens, best) = (list("token_logprobs"), list("top_logprobs"));
    assert_eq!(tokens.len(), prompt.len() + 1, "{answer}");
    let scored = context.len()..prompt.len();
    let number = |value: &Value| value.as_f64().expect("a number");
    let sum = tokens[scored.clone()].iter().map(number).sum();
    let is_best = |place: usize| {
        let best = best[place].as_object().expect("an object").values().map(number);
        number(&tokens[place]) >= best.fold(f64::NEG_INFINITY, f64::max)
    };
    (sum, scored.clone().all(is_best))
}

fn number(count: usize) -> f64 {
    f64::from(u32::try_from(count).expect("a small number"))
}

/// Shares of right answers of the tasks of choices and of words.
fn accuracies(requests: &[Request], found: &[(f64, bool)]) -> [f64; 2] {
    let of = |task: &str| {
        let pairs = requests.iter().zip(found);
        pairs.filter(|(request, _)| request.task == task).collect::<Vec<_>>()
    };
    let words = of("setun_words");
    let right = words.iter().filter(|(_, (_, is_greedy))| *is_greedy).count();
    let endings = of("setun_endings");
    let docs = endings.chunk_by(|(one, _), (other, _)| one.doc == other.doc);
    let (mut chosen, mut count) = (0, 0);
    for (answer, doc) in docs.enumerate() {
        let best = (0..doc.len()).max_by(|&a, &b| doc[a].1.0.total_cmp(&doc[b].1.0));
        chosen += usize::from(best == Some(answer % doc.len()));
        count += 1;
    }
    let share = |right: usize, count: usize| number(right) / number(count);
    [share(chosen, count), share(right, words.len())]
}

#[tokio::test]
async fn tasks_score_as_in_transformers() {
    let Scores { requests, metrics } = serde_json::from_str(SCORES).expect("scores");
    assert!(requests.len() >= 100, "{}", requests.len());
    let engine = engine(|config| config.device.cache_type = CacheType::F32);
    let router = router(engine, ServeOptions::new());
    let (mut found, mut without_first, mut strict) = (vec![], vec![], 0);
    for request in &requests {
        let Request { task, doc, context, continuation, log_likelihood, is_greedy } = request;
        let score = ask(&router, context, continuation).await;
        let difference = (score.0 - log_likelihood).abs() / number(continuation.len());
        assert!(difference <= FLIPPED, "{task} {doc}: {} is not {log_likelihood}", score.0);
        strict += usize::from(difference <= TOLERANCE);
        assert_eq!(score.1, *is_greedy, "{task} {doc}");
        found.push(score);
        // The harness leaves the first token out where it asks the server for tokens.
        without_first.push(match &context[1..] {
            [] => score,
            rest => ask(&router, rest, continuation).await,
        });
    }
    assert!(2 * strict >= requests.len(), "{strict} of {} are as near as most", requests.len());
    let expected = ["setun_endings", "setun_words"].map(|task| metrics[task]["acc"].as_f64());
    assert_eq!(accuracies(&requests, &found).map(Some), expected);
    assert_ne!(accuracies(&requests, &without_first).map(Some), expected, "the first token counts");
}
