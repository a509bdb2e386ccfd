//! Answers to the requests of a batch, by the routes that answer clients.

use std::{
    sync::{Arc, Weak},
    time::Duration,
};

use axum::{
    body::{Body, to_bytes},
    extract::{Request, State},
    http::{HeaderValue, StatusCode, header::CONTENT_TYPE},
    response::{IntoResponse, Response},
};
use serde_json::{Map, Value};
use setun::batch_file::{BatchRequest, PreparedRequest, id_of, refusal, settled, texts_of};
use tokio::{sync::Semaphore, time::sleep};

use crate::files::service::Batches;
use crate::{
    api_keys::KeyHash,
    app::{App, AppState},
    error::ApiError,
    openai::{chat, completions, embeddings},
    request_id::RequestId,
    responses::create,
    warnings::Warnings,
};

/// The priority of all requests of batches: below that of every client.
const PRIORITY: i32 = i32::MIN;

/// The field of the priority.
const PRIORITY_FIELD: &str = "priority";

/// How often a request is tried whose answer is a fault of the server that may pass, and the pause after it.
const ATTEMPTS: u32 = 5;
const PAUSE: Duration = Duration::from_secs(1);

/// Longest pause of a request that finds no room.
const MAX_PAUSE: Duration = Duration::from_secs(10);

/// What answers the requests of one batch.
pub(super) struct Answering {
    pub(super) app: Weak<AppState>,
    pub(super) batches: Arc<Batches>,
    pub(super) owner: String,
    /// What chat templates have as now.
    pub(super) time: u64,
    pub(super) places: Arc<Semaphore>,
}

/// The answer of a request.
pub(super) struct Answered {
    pub(super) custom_id: String,
    pub(super) status: u16,
    pub(super) body: String,
}

/// Why requests are answered no more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stop {
    /// The server ends. The next start goes on.
    Server,
    Cancelled,
    Expired,
    /// The server has the batch's key no more.
    Key,
}

/// What an attempt has ended with.
enum Attempt {
    Answer(StatusCode, String),
    /// There is no room at present.
    Busy(Duration),
}

impl Answering {
    pub(super) async fn answer(&self, request: BatchRequest) -> Result<Answered, Stop> {
        let BatchRequest { custom_id, url, body } = request;
        if let Some((status, body)) = refusal(&body) {
            return Ok(Answered { custom_id, status, body });
        }
        let texts = texts_of(&url, &body);
        let seed = setun::row_seed(0, &custom_id);
        let PreparedRequest { mut body, model } =
            PreparedRequest::new(&url, body, seed, Some(self.time));
        if let Some(model) = &model {
            body.insert("model".to_owned(), model.clone());
        }
        if body.get(PRIORITY_FIELD).is_none_or(|given| given.is_null() || given.is_i64()) {
            body.insert(PRIORITY_FIELD.to_owned(), PRIORITY.into());
        }
        let _place = self.places.acquire().await.map_err(|_| Stop::Server)?;
        let (mut attempts, mut waits) = (0, 0);
        loop {
            let (status, body) = match self.attempt(&custom_id, &url, &body, texts).await? {
                Attempt::Answer(status, body) => (status, body),
                Attempt::Busy(time) => {
                    waits += 1;
                    sleep((time * waits).min(MAX_PAUSE)).await;
                    continue;
                }
            };
            attempts += 1;
            if may_pass(status) && attempts < ATTEMPTS {
                sleep(PAUSE * attempts).await;
                continue;
            }
            let (body, _) = settled(&body, &custom_id, model);
            return Ok(Answered { custom_id, status: status.as_u16(), body });
        }
    }

    async fn attempt(
        &self,
        custom_id: &str,
        url: &str,
        body: &Map<String, Value>,
        texts: usize,
    ) -> Result<Attempt, Stop> {
        let app = self.app.upgrade().ok_or(Stop::Server)?;
        let (key, is_one_of_several) = self.batches.key_of(&self.owner).map_err(|_| Stop::Key)?;
        if app.lifecycle.is_draining() {
            return Err(Stop::Server);
        }
        let guard = match app.limiter().begin(key, is_one_of_several) {
            Ok(guard) => guard,
            Err(error) => return Ok(Attempt::Busy(pause(&error.into_response()))),
        };
        let mut request = Request::new(Body::from(Value::Object(body.clone()).to_string()));
        *request.method_mut() = axum::http::Method::POST;
        // It is one of the urls of batch files.
        *request.uri_mut() = url.parse().unwrap_or_default();
        request.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        let extensions = request.extensions_mut();
        extensions.insert(guard);
        extensions.insert(Warnings::default());
        if let Ok(id) = HeaderValue::try_from(format!("batch_req_{}", id_of(custom_id))) {
            extensions.insert(RequestId(id));
        }
        let response = route(&app, url, request).await;
        let status = response.status();
        if app.lifecycle.is_draining() && !status.is_success() {
            return Err(Stop::Server);
        }
        if status == StatusCode::TOO_MANY_REQUESTS
            && texts <= most_texts(&app, key, is_one_of_several, body).await
        {
            return Ok(Attempt::Busy(pause(&response)));
        }
        app.metrics.add_batch_request(status.as_u16());
        let body = to_bytes(response.into_body(), usize::MAX).await;
        Ok(match body {
            Ok(body) => Attempt::Answer(status, String::from_utf8_lossy(&body).into_owned()),
            Err(error) => Attempt::Answer(StatusCode::INTERNAL_SERVER_ERROR, error.to_string()),
        })
    }
}

/// The answer of a route that batches are for.
async fn route(app: &App, url: &str, request: Request) -> Response {
    let state = State(Arc::clone(app));
    let answer = match url {
        "/v1/chat/completions" => chat::create(state, request).await,
        "/v1/completions" => completions::create(state, request).await,
        "/v1/embeddings" => embeddings::create(state, request).await,
        "/v1/responses" => create::create(state, request).await,
        other => Err(ApiError::no_route(other)),
    };
    answer.into_response()
}

/// Texts that a request of this key may have at all.
async fn most_texts(
    app: &App,
    key: Option<KeyHash>,
    is_one_of_several: bool,
    body: &Map<String, Value>,
) -> usize {
    let name = body.get("model").and_then(Value::as_str).map(str::to_owned);
    let Ok(model) = app.named(name).await else { return usize::MAX };
    let of_engine = model.engine.max_requests_of_a_device();
    let of_key = app.limiter().most_texts(&model.engine, key, is_one_of_several);
    of_key.map_or(of_engine, |most| most.min(of_engine))
}

/// Whether a fault may have gone the next time.
fn may_pass(status: StatusCode) -> bool {
    matches!(
        status,
        StatusCode::REQUEST_TIMEOUT
            | StatusCode::INTERNAL_SERVER_ERROR
            | StatusCode::SERVICE_UNAVAILABLE
    )
}

/// How long a request waits that was refused for lack of room.
fn pause(response: &Response) -> Duration {
    let time =
        response.headers().get("retry-after-ms").and_then(|time| time.to_str().ok()?.parse().ok());
    Duration::from_millis(time.unwrap_or(100)).clamp(Duration::from_millis(20), MAX_PAUSE)
}
