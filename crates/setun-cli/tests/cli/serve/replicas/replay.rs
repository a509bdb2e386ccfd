//! Replay of a trace against a server or a proxy before several.

use std::{
    collections::HashMap,
    fmt::{self, Display},
    io::{BufRead, BufReader},
    path::Path,
    sync::{Condvar, Mutex},
    thread,
    time::{Duration, Instant},
};

use serde::Serialize;
use serde_json::{Value, json};
use ureq::{Agent, Body, http::Response};

use super::trace::{self, Request};

/// When requests are sent. They are always begun in the order of the trace, and one of a conversation
/// after the answer to the one before.
#[derive(Clone, Copy)]
pub(super) enum Pace {
    /// At their times, or later where this number is open.
    Timed(usize),
    /// As fast as they are answered, this number at a time.
    Open(usize),
}

impl Pace {
    /// Requests that are open at a time, at the most.
    pub(super) fn open(self) -> usize {
        let (Self::Timed(open) | Self::Open(open)) = self;
        open
    }
}

impl Display for Pace {
    fn fmt(&self, formatter: &mut fmt::Formatter) -> fmt::Result {
        match self {
            Self::Timed(_) => write!(formatter, "timed"),
            Self::Open(open) => write!(formatter, "{open}"),
        }
    }
}

/// How a request was answered.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Answer {
    pub(super) key: String,
    /// The server that the proxy names.
    pub(super) server: String,
    pub(super) prompt_tokens: u32,
    pub(super) cached_tokens: u32,
    /// Milliseconds to the first token.
    pub(super) first_token_ms: f64,
}

/// The answers to the requests of a trace's file, in its order.
pub(super) fn replay(path: &Path, address: &str, pace: Pace) -> Vec<Answer> {
    send(&trace::read(path), address, pace)
}

/// The answers to requests, in their order.
pub(super) fn send(requests: &[Request], address: &str, pace: Pace) -> Vec<Answer> {
    let (client, begun) = (Client::new(address), Instant::now());
    let turns = Turns::default();
    let mut answers = thread::scope(|scope| {
        let work = || {
            let mut answers = vec![];
            while let Some((number, earlier)) = turns.take(requests) {
                let request = &requests[number];
                if let Pace::Timed(_) = pace {
                    let at = begun + Duration::from_millis(request.at_ms);
                    thread::sleep(at.saturating_duration_since(Instant::now()));
                }
                turns.wait_for(&request.key, earlier);
                answers.push((number, client.complete(request)));
                turns.has_ended(&request.key);
            }
            answers
        };
        let workers: Vec<_> = (0..pace.open()).map(|_| scope.spawn(work)).collect();
        workers.into_iter().flat_map(|worker| worker.join().expect("no panic")).collect::<Vec<_>>()
    });
    answers.sort_by_key(|(number, _)| *number);
    answers.into_iter().map(|(_, answer)| answer).collect()
}

/// The share of the prompts' tokens that were cached.
pub(super) fn cached_share(answers: &[Answer]) -> f64 {
    let sum = |of: fn(&Answer) -> u32| f64::from(answers.iter().map(of).sum::<u32>());
    sum(|answer| answer.cached_tokens) / sum(|answer| answer.prompt_tokens)
}

/// Which requests of each conversation were taken and have ended.
#[derive(Default)]
struct Turns {
    taken: Mutex<(usize, HashMap<String, usize>)>,
    ended: Mutex<HashMap<String, usize>>,
    changed: Condvar,
}

impl Turns {
    /// The next request, and how many of its conversation come before it.
    fn take(&self, requests: &[Request]) -> Option<(usize, usize)> {
        let mut taken = self.taken.lock().expect("no panic");
        let (next, earlier) = &mut *taken;
        let request = requests.get(*next)?;
        let count = earlier.entry(request.key.clone()).or_default();
        *count += 1;
        *next += 1;
        Some((*next - 1, *count - 1))
    }

    fn wait_for(&self, key: &str, earlier: usize) {
        let ended = self.ended.lock().expect("no panic");
        let is_open = |ended: &mut HashMap<String, usize>| {
            ended.get(key).copied().unwrap_or_default() < earlier
        };
        drop(self.changed.wait_while(ended, is_open).expect("no panic"));
    }

    fn has_ended(&self, key: &str) {
        *self.ended.lock().expect("no panic").entry(key.to_owned()).or_default() += 1;
        self.changed.notify_all();
    }
}

/// Requests over connections that are kept.
pub(super) struct Client {
    agent: Agent,
    url: String,
}

impl Client {
    pub(super) fn new(address: &str) -> Self {
        let config = Agent::config_builder()
            .proxy(None)
            .http_status_as_error(false)
            .timeout_global(Some(Duration::from_mins(5)))
            .max_idle_connections_per_host(64);
        Self { agent: config.build().into(), url: format!("http://{address}") }
    }

    /// The answer to a body with headers.
    pub(super) fn post(&self, path: &str, headers: &[(&str, &str)], body: &str) -> Response<Body> {
        let mut request = self.agent.post(format!("{}{path}", self.url));
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        request.send(body).expect("an answer")
    }

    fn complete(&self, request: &Request) -> Answer {
        let body = json!({"prompt": request.tokens(), "prompt_cache_key": request.key, "stream": true,
            "stream_options": {"include_usage": true}, "temperature": 0,
            "min_tokens": request.output, "max_tokens": request.output});
        let begun = Instant::now();
        let response = self.post("/v1/completions", &[], &body.to_string());
        let (server, status) = (served_by(&response), response.status());
        let (mut usage, mut first_token) = (Value::Null, None);
        for line in BufReader::new(response.into_body().into_reader()).lines() {
            let line = line.expect("a line");
            assert_eq!(status, 200, "{line}");
            let Some(data) = line.strip_prefix("data: ").filter(|data| *data != "[DONE]") else {
                continue;
            };
            first_token.get_or_insert_with(|| begun.elapsed());
            let event: Value = serde_json::from_str(data).expect("JSON");
            assert!(event["error"].is_null(), "{event}");
            if !event["usage"].is_null() {
                usage = event["usage"].clone();
            }
        }
        let count = |value: &Value| -> u32 {
            value.as_u64().and_then(|count| count.try_into().ok()).expect("a number of tokens")
        };
        Answer {
            key: request.key.clone(),
            server,
            prompt_tokens: count(&usage["prompt_tokens"]),
            cached_tokens: count(&usage["prompt_tokens_details"]["cached_tokens"]),
            first_token_ms: first_token.expect("an event").as_secs_f64() * 1000.0,
        }
    }
}

/// The server that a proxy names, if there is one.
pub(super) fn served_by(response: &Response<Body>) -> String {
    let name = response.headers().get("x-served-by");
    name.map(|name| name.to_str().expect("a name").to_owned()).unwrap_or_default()
}
