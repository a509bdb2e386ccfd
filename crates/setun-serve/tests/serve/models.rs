//! Several models: loads on demand, a memory budget, their end.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use axum::{Router, body::Body, http::Request};
use serde_json::{Value, json};
use setun::{Clock, Engine};
use setun_serve::{
    KeepAlive, LoadProgress, ModelRegistry, ModelSpec, OpenError, OpenModel, ServeOptions, router,
};
use tokio::{sync::Semaphore, task::yield_now};

use crate::support::{Answer, engine, get, post, with};

/// Opens the story model, and counts how many of it are in memory.
#[derive(Clone, Default)]
struct Opener {
    bytes: u64,
    is_corrupt: bool,
    opened: Arc<AtomicUsize>,
    /// Loads wait for a permit, if there is one.
    gate: Option<Arc<Semaphore>>,
}

impl OpenModel for Opener {
    fn memory_bytes(&self) -> Result<u64, OpenError> {
        Ok(self.bytes)
    }

    fn open(&self, progress: &LoadProgress) -> Result<Engine, OpenError> {
        progress.set(1, 2);
        self.opened.fetch_add(1, Ordering::SeqCst);
        if let Some(gate) = &self.gate {
            let permit = tokio::runtime::Handle::current().block_on(gate.acquire());
            permit.expect("it is not closed").forget();
        }
        if self.is_corrupt { Err("the header is damaged".into()) } else { Ok(engine(|_| {})) }
    }
}

fn models(specs: Vec<ModelSpec>) -> (ModelRegistry, Router) {
    let registry = ModelRegistry::new(specs).expect("distinct names");
    (registry.clone(), router(registry, ServeOptions::new()))
}

async fn complete(router: &Router, model: &str) -> Answer {
    let body = json!({"model": model, "prompt": "A cat", "max_tokens": 2});
    post(router, "/v1/completions", &body).await
}

/// The value of a metric of a model.
pub(crate) fn metric(page: &str, name: &str, model: &str) -> u64 {
    let line = format!("setun_{name}{{model_name=\"{model}\"}} ");
    let at = page.find(&line).unwrap_or_else(|| panic!("{line} in {page}")) + line.len();
    page[at..].lines().next().and_then(|value| value.parse().ok()).expect("a number")
}

/// Three models and room for two: each answers, the corrupt one alone fails, and no more are loaded
/// than fit.
#[tokio::test]
async fn models_take_turns_in_a_budget_and_a_corrupt_one_harms_no_other() {
    let opener = Opener { bytes: 10, ..Opener::default() };
    let corrupt = Opener { is_corrupt: true, ..opener.clone() };
    let specs = ["a", "b", "c"].map(|name| ModelSpec::new(name, opener.clone()));
    let specs = specs.into_iter().chain([ModelSpec::new("broken", corrupt).alias("worst")]);
    let (registry, router) = models(specs.collect());
    registry.set_memory_budget(Some(25));
    let names = ["a", "b", "c", "worst"];
    let mut seed = 7_usize;
    let requests = std::iter::repeat_with(|| {
        seed = seed.wrapping_mul(25_214_903_917).wrapping_add(11);
        names[(seed >> 16) % names.len()]
    });
    let requests: Vec<_> = requests.take(24).chain(names).collect();
    let answers = requests.iter().map(|name| complete(&router, name));
    for (answer, name) in futures::future::join_all(answers).await.iter().zip(&requests) {
        if *name == "worst" {
            let error = answer.error();
            let status = answer.status.as_u16();
            assert_eq!((status, error["code"].as_str()), (503, Some("model_not_loaded")));
            assert_eq!(answer.headers["x-should-retry"], "false");
            assert!(error["message"].as_str().is_some_and(|text| text.contains("damaged")));
        } else {
            assert_eq!(answer.json()["model"], **name);
            assert_eq!(answer.json()["usage"]["completion_tokens"], 2);
        }
    }
    let page = get(&router, "/metrics").await.text;
    let sum = |name| ["a", "b", "c"].map(|model| metric(&page, name, model)).iter().sum::<u64>();
    let good = requests.iter().filter(|name| **name != "worst").count() as u64;
    assert_eq!(sum("generation_tokens_total"), 2 * good, "those of engines that have ended, too");
    assert!(sum("model_loaded") <= 2 && sum("model_unloads_total") > 0, "{page}");
    assert_eq!(sum("model_loads_total"), sum("model_loaded") + sum("model_unloads_total"));
    assert_eq!(metric(&page, "model_loads_total", "broken"), 0);
    assert!(metric(&page, "model_load_failures_total", "broken") > 0);
    registry.close();
}

#[tokio::test]
async fn the_least_recently_used_model_makes_room() {
    // More than the model has: a model counts for what it has at least.
    let opener = Opener { bytes: 1 << 30, ..Opener::default() };
    let names = ["a", "b", "c"];
    let (registry, router) = models(names.map(|name| ModelSpec::new(name, opener.clone())).into());
    registry.set_memory_budget(Some(5 << 29));
    for (asked, expected) in
        [("a", "a"), ("b", "ab"), ("a", "ab"), ("c", "ac"), ("b", "bc"), ("c", "bc"), ("a", "ac")]
    {
        complete(&router, asked).await.json();
        let page = get(&router, "/metrics").await.text;
        let loaded = names.into_iter().filter(|name| metric(&page, "model_loaded", name) == 1);
        assert_eq!(loaded.collect::<String>(), expected, "after {asked}");
    }
    registry.close();
}

/// A model with requests under way stays, however much another needs its room.
#[tokio::test]
async fn a_busy_model_is_not_unloaded_and_what_fits_never_is_refused() {
    let opener = Opener { bytes: 10, ..Opener::default() };
    let large = Opener { bytes: 30, ..Opener::default() };
    let specs = ["a", "b"].map(|name| ModelSpec::new(name, opener.clone()));
    let (registry, router) =
        models(specs.into_iter().chain([ModelSpec::new("large", large)]).collect());
    registry.set_memory_budget(Some(15));
    let body = json!({"model": "a", "prompt": "A cat", "max_tokens": 9, "stream": true});
    let request = Request::post("/v1/completions").body(Body::from(body.to_string()));
    let streamed = tower::ServiceExt::oneshot(router.clone(), request.expect("a request"));
    let stream = streamed.await.expect("an answer");
    let mut other = Box::pin(complete(&router, "b"));
    for _ in 0..50 {
        assert!(futures::poll!(&mut other).is_pending(), "the model before it is in use");
        yield_now().await;
    }
    let text = axum::body::to_bytes(stream.into_body(), usize::MAX).await.expect("a body");
    assert!(text.ends_with(b"data: [DONE]\n\n"));
    let (other, again) = futures::join!(other, complete(&router, "a"));
    assert_eq!((&other.json()["model"], &again.json()["model"]), (&json!("b"), &json!("a")));
    let refused = complete(&router, "large").await;
    let code = refused.error()["code"].clone();
    assert_eq!((refused.status.as_u16(), code.as_str()), (507, Some("insufficient_memory")));
    registry.close();
}

/// Several requests wait for one load. It goes on when those leave that began it.
#[tokio::test]
async fn a_load_outlives_the_clients_that_leave() {
    let gate = Arc::new(Semaphore::new(0));
    let opener = Opener { gate: Some(Arc::clone(&gate)), ..Opener::default() };
    let opened = Arc::clone(&opener.opened);
    let (registry, router) = models(vec![ModelSpec::new("a", opener)]);
    let started = registry.start(vec!["a".to_owned()]);
    let mut first = Box::pin(complete(&router, "a"));
    let mut second = Box::pin(complete(&router, "a"));
    while opened.load(Ordering::SeqCst) == 0 {
        assert!(
            futures::poll!(&mut first).is_pending() && futures::poll!(&mut second).is_pending()
        );
        yield_now().await;
    }
    let loading = get(&router, "/ready").await;
    assert_eq!(loading.status.as_u16(), 503);
    let report: Value = serde_json::from_str(&loading.text).expect("JSON");
    let expected = json!({"name": "a", "state": "loading", "read_bytes": 1, "total_bytes": 2});
    assert_eq!(report, json!({"status": "loading", "models": [], "others": [expected]}));
    drop(first);
    gate.add_permits(1);
    assert_eq!(second.await.json()["model"], "a");
    started.await.expect("it is loaded");
    assert_eq!(get(&router, "/ready").await.json()["models"], json!(["a"]));
    assert_eq!(opened.load(Ordering::SeqCst), 1, "one load");
    registry.close();
}

/// Ollama's requests say how long a model stays, and have it unloaded without loading it.
#[tokio::test]
async fn requests_of_ollama_keep_a_model_or_let_it_go() {
    let opener = Opener::default();
    let opened = Arc::clone(&opener.opened);
    let (registry, router) = models(vec![ModelSpec::new("a", opener)]);
    let ask = async |path: &str, more: &Value| {
        let body = json!({"model": "a:latest", "stream": false, "options": {"num_predict": 1}});
        post(&router, path, &with(&body, more)).await.json()
    };
    let expires = async || get(&router, "/api/ps").await.json()["models"][0]["expires_at"].clone();
    let is_limited = |time: Value| !time.as_str().expect("a time").starts_with("9999-");
    let text = json!({"prompt": "A cat"});
    ask("/api/generate", &text).await;
    assert!(!is_limited(expires().await), "as the server says");
    ask("/api/generate", &with(&text, &json!({"keep_alive": "1h30m"}))).await;
    assert!(is_limited(expires().await));
    ask("/api/generate", &text).await;
    assert!(is_limited(expires().await), "from then on");
    ask("/api/embed", &json!({"input": "A cat", "keep_alive": -1})).await;
    assert!(!is_limited(expires().await));

    let gone = async || {
        while get(&router, "/api/ps").await.json()["models"] != json!([]) {
            yield_now().await;
        }
    };
    let chat = json!({"messages": [{"role": "user", "content": "A cat"}], "keep_alive": 0});
    assert_eq!(ask("/api/chat", &chat).await["eval_count"], 1);
    gone().await;
    ask("/api/chat", &with(&chat, &json!({"keep_alive": "24h"}))).await;
    let loads = opened.load(Ordering::SeqCst);
    for path in ["/api/generate", "/api/chat", "/api/generate"] {
        assert_eq!(ask(path, &json!({"keep_alive": 0})).await["done_reason"], "unload");
        gone().await;
    }
    for (path, wrong) in [
        ("/api/chat", json!({"messages": ""})),
        ("/api/chat", json!({"tools": 5})),
        ("/api/generate", json!({"prompt": []})),
        ("/api/generate", json!({"options": "none"})),
    ] {
        let body = with(&json!({"model": "a", "keep_alive": 0}), &wrong);
        assert_eq!(post(&router, path, &body).await.status, 400, "{path} {wrong}");
    }
    assert_eq!((loads, opened.load(Ordering::SeqCst)), (2, 2), "none is loaded to be unloaded");
    registry.close();
}

/// An hour by the clock of the registry.
#[tokio::test]
async fn a_model_stays_for_its_time_after_its_last_request() {
    let (hour, clock) = (Duration::from_hours(1), Clock::held());
    let registry = ModelRegistry::new(vec![ModelSpec::new("a", Opener::default())]);
    let registry = registry.expect("a name").keep_alive(KeepAlive::For(hour)).clock(clock.clone());
    let router = router(registry.clone(), ServeOptions::new());
    let models = async || get(&router, "/ready").await.json()["models"].clone();
    for _ in 0..2 {
        complete(&router, "a").await.json();
        while clock.waiting() == 0 {
            yield_now().await;
        }
        clock.advance(hour / 4 * 3);
        assert_eq!(models().await, json!(["a"]));
    }
    clock.advance(hour / 4);
    while models().await != json!([]) {
        yield_now().await;
    }
    registry.close();
}

/// A model without requests ends after its time, unless it is pinned; one that is named no more
/// ends, and one that stays keeps running.
#[tokio::test]
async fn idle_and_removed_models_end_and_others_stay() {
    let opener = Opener::default();
    let opened = Arc::clone(&opener.opened);
    let brief = KeepAlive::For(Duration::ZERO);
    let spec = |name: &str| ModelSpec::new(name, opener.clone()).keep_alive(brief);
    let pinned = spec("pinned").pinned(true);
    let stays = spec("stays").keep_alive(KeepAlive::Unlimited);
    let (registry, router) =
        models(vec![pinned.clone(), stays.clone(), spec("brief"), spec("removed").alias("old")]);
    registry.start(registry.pinned()).await.expect("it is loaded");
    for name in ["stays", "brief", "old"] {
        complete(&router, name).await.json();
    }
    while get(&router, "/ready").await.json()["models"] != json!(["pinned", "stays"]) {
        yield_now().await;
    }
    let loads = opened.load(Ordering::SeqCst);
    let twice = registry.set_models(vec![stays.clone(), spec("stays")]).expect_err("a name twice");
    assert_eq!(twice.name, "stays");
    registry.set_models(vec![stays.alias("new"), pinned, spec("brief")]).expect("distinct names");
    let gone = complete(&router, "old").await;
    assert_eq!(gone.error()["code"], "model_not_found");
    assert_eq!(complete(&router, "new").await.json()["model"], "new");
    assert_eq!(opened.load(Ordering::SeqCst), loads, "it has kept running");
    let listed = get(&router, "/v1/models").await.json();
    let listed = listed["data"].as_array().expect("a list").iter();
    let listed: Vec<_> = listed.map(|model| (model["id"].clone(), model["root"].clone())).collect();
    let expected = [("stays", "stays"), ("new", "stays"), ("pinned", "pinned"), ("brief", "brief")];
    assert_eq!(listed, expected.map(|(id, root)| (json!(id), json!(root))));
    registry.close();
}

/// In every API, the one served model that is near.
#[tokio::test]
async fn a_misspelled_model_suggests_the_served_one() {
    let specs = ["o/stories-1m", "falcon3-1b", "falcon3-3b"];
    let specs = specs.map(|name| ModelSpec::new(name, Opener::default()));
    let registry = ModelRegistry::new(specs.into()).expect("distinct names");
    let router = router(registry.clone(), ServeOptions::new());
    let user = json!([{"role": "user", "content": "a"}]);
    for (name, meant) in [
        ("stories1m", Some("o/stories-1m")),
        ("O/Stories-1M", Some("o/stories-1m")),
        ("falcon3-1b:8q", Some("falcon3-1b")),
        ("falcon3-8b", None),
        ("gpt-4o", None),
    ] {
        for (path, body) in [
            ("/v1/chat/completions", json!({"messages": user})),
            ("/v1/completions", json!({"prompt": "a"})),
            ("/v1/responses", json!({"input": "a"})),
            ("/v1/messages", json!({"messages": user, "max_tokens": 1})),
            ("/v1/embeddings", json!({"input": "a"})),
            ("/api/chat", json!({"messages": user})),
            ("/api/show", json!({})),
        ] {
            let answer = post(&router, path, &with(&body, &json!({"model": name}))).await;
            assert_eq!(answer.status, 404, "{path} {name}");
            let expected = meant.map(|meant| format!("; did you mean \\\"{meant}\\\"?"));
            let found = answer.text.find("; did you mean").map(|at| &answer.text[at..]);
            let is_meant = found
                .zip(expected.as_deref())
                .is_some_and(|(found, expected)| found.starts_with(expected));
            assert_eq!(is_meant, meant.is_some(), "{path} {name}: {}", answer.text);
        }
        let answer = get(&router, &format!("/v1/models/{name}")).await;
        assert_eq!(answer.text.contains("did you mean"), meant.is_some(), "{}", answer.text);
    }
    registry.close();
}
