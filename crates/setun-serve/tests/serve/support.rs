//! Engines, requests and answers.

use std::{
    collections::BTreeMap,
    fs,
    path::Path,
    sync::{Arc, Condvar, LazyLock, Mutex},
};

use axum::{
    Router,
    body::{Body, to_bytes},
    http::{HeaderMap, Request, StatusCode},
};
use serde_json::{Value, json};
use setun::{
    Engine, EngineConfig, GenerateOptions, LogitsProcessor, Model,
    checkpoint::Source,
    text::{Candidates, SharedProcessor, Step, TextError},
};
use setun_serve::{FileLimits, FileStore, ServeOptions, router};
use tempfile::TempDir;
use tower::ServiceExt;

/// Name of the model.
pub(crate) const MODEL: &str = "stories";

/// A template of a few words, the date where it is asked for.
const TEMPLATE: &str = "{% if dated %}{{ strftime_now('%d %m') }}\n{% endif %}\
                        {% for m in messages %}{{ m.role }}: {{ m.content }}\n{% endfor %}";

/// An engine that all tests share which do not look at its metrics.
pub(crate) fn shared() -> Engine {
    static ENGINE: LazyLock<Engine> =
        LazyLock::new(|| engine(|config| config.engine.operation_times = true));
    ENGINE.clone()
}

/// An engine over the story model with a chat template.
pub(crate) fn engine(configure: impl FnOnce(&mut EngineConfig)) -> Engine {
    engine_with(TEMPLATE, configure)
}

/// The same with another template.
pub(crate) fn engine_with(template: &str, configure: impl FnOnce(&mut EngineConfig)) -> Engine {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"));
    let folder = folder.join("../../tests/fixtures/golden/real-tinystories-1m");
    let read = |name: &str| fs::read(folder.join(name)).expect(name);
    let names = ["config.json", "generation_config.json", "tokenizer.json", "model.safetensors"];
    let mut files: BTreeMap<&str, Vec<u8>> = names.map(|name| (name, read(name))).into();
    let tokenizer = json!({"bos_token": "<s>", "chat_template": template});
    files.insert("tokenizer_config.json", tokenizer.to_string().into_bytes());
    let files = files.iter().map(|(name, bytes)| (*name, &bytes[..])).collect();
    let model = Model::from_files(Source::Folder, MODEL, &files).expect("a model");
    let mut config = EngineConfig::default();
    config.device.threads = Some(1);
    configure(&mut config);
    Engine::builder(model).config(config).build().expect("an engine")
}

/// A router over the shared engine.
pub(crate) fn shared_router() -> Router {
    router(shared(), ServeOptions::new())
}

/// A router over the shared engine that keeps files, and their folder.
pub(crate) fn router_with_files(options: ServeOptions) -> (Router, TempDir) {
    let folder = tempfile::tempdir().expect("a folder");
    let store = FileStore::open(folder.path(), FileLimits::default()).expect("a store");
    (router(shared(), options.files(store)), folder)
}

/// An answer.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) text: String,
}

impl Answer {
    /// The JSON of an answer with status 200.
    #[track_caller]
    pub(crate) fn json(&self) -> Value {
        assert_eq!(self.status, StatusCode::OK, "{}", self.text);
        serde_json::from_str(&self.text).expect("JSON")
    }

    /// The error of another answer.
    #[track_caller]
    pub(crate) fn error(&self) -> Value {
        assert!(!self.status.is_success(), "{}", self.text);
        let body: Value = serde_json::from_str(&self.text).expect("JSON");
        let error = &body["error"];
        let keys: Vec<_> = error.as_object().expect("an object").keys().collect();
        assert_eq!(keys, ["message", "type", "param", "code"], "{body}");
        error.clone()
    }

    /// The chunks of a stream that ends as it should.
    #[track_caller]
    pub(crate) fn chunks(&self) -> Vec<Value> {
        assert_eq!(self.headers["content-type"], "text/event-stream");
        let events = self.text.strip_suffix("data: [DONE]\n\n").expect("an end");
        let data = events.split_terminator("\n\n").map(|event| {
            let data = event.strip_prefix("data: ").expect("an event");
            serde_json::from_str(data).expect("JSON")
        });
        data.collect()
    }
}

/// Sends a request.
pub(crate) async fn send(router: &Router, request: Request<Body>) -> Answer {
    let response = router.clone().oneshot(request).await.expect("an answer");
    let (parts, body) = response.into_parts();
    let body = to_bytes(body, usize::MAX).await.expect("a body");
    let text = String::from_utf8(body.to_vec()).expect("UTF-8");
    Answer { status: parts.status, headers: parts.headers, text }
}

pub(crate) async fn post(router: &Router, path: &str, body: &Value) -> Answer {
    let request = Request::post(path).body(Body::from(body.to_string()));
    send(router, request.expect("a request")).await
}

pub(crate) async fn get(router: &Router, path: &str) -> Answer {
    send(router, Request::get(path).body(Body::empty()).expect("a request")).await
}

/// A value with more fields.
pub(crate) fn with(value: &Value, more: &Value) -> Value {
    let mut fields = value.as_object().expect("an object").clone();
    fields.extend(more.as_object().expect("an object").clone());
    Value::Object(fields)
}

/// Holds generations before their third token, or a later one, until it is opened.
#[derive(Clone, Default)]
pub(crate) struct Gate(Arc<(Mutex<GateState>, Condvar)>);

struct GateState {
    reached: usize, // by a generation that is held
    hold: usize,    // tokens at which the next one is
}

impl Default for GateState {
    fn default() -> Self {
        Self { reached: 0, hold: 2 }
    }
}

impl Gate {
    /// An engine whose generations are held, one at a time.
    pub(crate) fn engine(&self) -> Engine {
        self.engine_for(1)
    }

    /// An engine with this many generations at the same time, whose steps wait where one is held.
    pub(crate) fn engine_for(&self, max_concurrent: usize) -> Engine {
        engine(|config| {
            config.engine.max_concurrent = max_concurrent;
            let gate = SharedProcessor::new(self.clone());
            config.generation = GenerateOptions::new().logits_processors([gate]);
        })
    }

    /// Waits until a generation is held.
    pub(crate) fn wait(&self) {
        let state = self.0.0.lock().expect("no panic");
        drop(self.0.1.wait_while(state, |state| state.reached < state.hold).expect("no panic"));
    }

    /// Lets the generation that is held have one token more.
    pub(crate) fn step(&self) {
        self.hold_at(|hold| hold + 1);
        self.wait();
    }

    pub(crate) fn open(&self) {
        self.hold_at(|_| usize::MAX);
    }

    fn hold_at(&self, next: impl Fn(usize) -> usize) {
        let mut state = self.0.0.lock().expect("no panic");
        state.hold = next(state.hold);
        self.0.1.notify_all();
    }
}

impl LogitsProcessor for Gate {
    fn process(&self, _: &mut Candidates, step: &Step<'_>) -> Result<(), TextError> {
        let tokens = step.history.len() - step.prompt_tokens;
        let mut state = self.0.0.lock().expect("no panic");
        if tokens == state.hold {
            state.reached = tokens;
            self.0.1.notify_all();
            drop(self.0.1.wait_while(state, |state| state.hold == tokens).expect("no panic"));
        }
        Ok(())
    }
}
