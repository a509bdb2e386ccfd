//! Files and batches.

mod course;
mod same_lines;
mod uploads;

use std::time::Duration;

use axum::{
    Router,
    body::Body,
    http::{Method, Request},
};
use serde_json::{Value, json};
use setun::Engine;
use setun_serve::{FileLimits, FileStore, ServeOptions, router};
use tempfile::TempDir;
use tokio::{task::yield_now, time::timeout};

use crate::support::{Answer, send};

/// What has not come by then never comes.
const PATIENCE: Duration = Duration::from_mins(5);

/// The boundary of forms.
const BOUNDARY: &str = "----part";

/// A server with files, and the key that its requests have.
pub(crate) struct Kept {
    pub(crate) router: Router,
    key: Option<&'static str>,
}

impl Kept {
    pub(crate) fn new(engine: Engine, folder: &TempDir, options: ServeOptions) -> Self {
        Self::within(engine, folder, options, |_| {})
    }

    pub(crate) fn within(
        engine: Engine,
        folder: &TempDir,
        options: ServeOptions,
        set: impl FnOnce(&mut FileLimits),
    ) -> Self {
        let mut limits = FileLimits::default();
        set(&mut limits);
        let store = FileStore::open(folder.path(), limits).expect("a folder");
        Self { router: router(engine, options.files(store)), key: None }
    }

    /// The same with requests of this key.
    pub(crate) fn with_key(&self, key: &'static str) -> Self {
        Self { router: self.router.clone(), key: Some(key) }
    }

    pub(crate) async fn ask(
        &self,
        method: Method,
        path: &str,
        body: impl Into<Body>,
        content_type: &str,
    ) -> Answer {
        let request = Request::builder().method(method).uri(path);
        let request = match self.key {
            Some(key) => request.header("authorization", format!("Bearer {key}")),
            None => request,
        };
        let request = request.header("content-type", content_type).body(body.into());
        send(&self.router, request.expect("a request")).await
    }

    pub(crate) async fn get(&self, path: &str) -> Answer {
        self.ask(Method::GET, path, Body::empty(), "").await
    }

    async fn delete(&self, path: &str) -> Answer {
        self.ask(Method::DELETE, path, Body::empty(), "").await
    }

    pub(crate) async fn post(&self, path: &str, body: &Value) -> Answer {
        self.ask(Method::POST, path, body.to_string(), "application/json").await
    }

    /// Uploads a file with these fields beside it.
    async fn upload(&self, content: &str, fields: &[(&str, &str)]) -> Answer {
        let form = form("in.jsonl", content, fields);
        let content_type = format!("multipart/form-data; boundary={BOUNDARY}");
        self.ask(Method::POST, "/v1/files", form, &content_type).await
    }

    /// The id of a new file.
    pub(crate) async fn file(&self, content: &str) -> String {
        id(&self.upload(content, &[("purpose", "batch")]).await.json())
    }

    /// The id of a new batch of completions.
    async fn batch(&self, content: &str) -> String {
        self.batch_of("/v1/completions", content).await
    }

    pub(crate) async fn batch_of(&self, endpoint: &str, content: &str) -> String {
        let body = json!({
            "input_file_id": self.file(content).await,
            "endpoint": endpoint,
            "completion_window": "24h",
        });
        id(&self.post("/v1/batches", &body).await.json())
    }

    /// A batch once it is as asked.
    pub(crate) async fn until(&self, id: &str, is_so: impl Fn(&Value) -> bool) -> Value {
        let path = format!("/v1/batches/{id}");
        let found = timeout(PATIENCE, async {
            loop {
                let batch = self.get(&path).await.json();
                if is_so(&batch) {
                    return batch;
                }
                yield_now().await;
            }
        });
        match found.await {
            Ok(batch) => batch,
            Err(_) => panic!("it does not come: {}", self.get(&path).await.text),
        }
    }

    /// A batch once it has ended.
    pub(crate) async fn ended(&self, id: &str) -> Value {
        let ends = ["completed", "failed", "cancelled", "expired"];
        self.until(id, |batch| ends.iter().any(|end| batch["status"] == *end)).await
    }

    /// The lines of a file that a batch names.
    pub(crate) async fn lines(&self, batch: &Value, field: &str) -> Vec<Value> {
        let lines = self.text(batch, field).await;
        lines.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect()
    }

    pub(crate) async fn text(&self, batch: &Value, field: &str) -> String {
        match batch[field].as_str() {
            Some(file) => self.get(&format!("/v1/files/{file}/content")).await.text,
            None => String::new(),
        }
    }
}

pub(crate) fn id(object: &Value) -> String {
    object["id"].as_str().expect("an id").to_owned()
}

/// A form with a file.
fn form(filename: &str, content: &str, fields: &[(&str, &str)]) -> String {
    let head =
        |name: &str| format!("--{BOUNDARY}\r\nContent-Disposition: form-data; name=\"{name}\"");
    let fields = fields.iter().map(|(name, value)| format!("{}\r\n\r\n{value}\r\n", head(name)));
    let fields: String = fields.collect();
    let file = format!("{}; filename=\"{filename}\"\r\n\r\n{content}\r\n", head("file"));
    format!("{fields}{file}--{BOUNDARY}--\r\n")
}

/// A line of a batch file.
pub(crate) fn line(key: &str, body: &Value) -> String {
    let url = "/v1/completions";
    json!({"custom_id": key, "method": "POST", "url": url, "body": body}).to_string() + "\n"
}

/// A request for this many tokens.
fn text(key: &str, tokens: usize) -> String {
    line(key, &json!({"prompt": "A cat", "max_tokens": tokens, "min_tokens": tokens}))
}

/// The keys of lines, sorted.
fn keys(lines: &[Value]) -> Vec<&str> {
    let mut keys: Vec<_> = lines.iter().filter_map(|line| line["custom_id"].as_str()).collect();
    keys.sort_unstable();
    keys
}
