//! Routes of health, readiness, version and metrics.

use axum::{
    extract::{Extension, State},
    http::{HeaderValue, StatusCode, header::CONTENT_TYPE},
    response::{IntoResponse, Response},
};
use serde::Serialize;

use crate::{
    app::App,
    error::{ApiError, json},
    prometheus,
    registry::{LoadState, ModelView},
};

/// Type of the text format of Prometheus.
const METRICS_TYPE: HeaderValue = HeaderValue::from_static("text/plain; version=0.0.4");

/// The answer for a load that failed. The error itself has paths, and is in the log.
const FAILURE: &str = "the last load failed: the log says why";

#[derive(Serialize)]
struct Report {
    status: &'static str,
    #[serde(flatten)]
    models: Option<Models>,
}

/// Models of the answer, which needs a key if the server has keys.
#[derive(Serialize)]
struct Models {
    /// The models that are loaded.
    models: Vec<String>,
    /// Those that are not.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    others: Vec<OtherModel>,
}

/// Whether a request has a key, or needs none.
#[derive(Clone, Copy, Debug)]
pub(crate) struct HasKey(pub(crate) bool);

/// A model that is not loaded, and how far its load is.
#[derive(Serialize)]
struct OtherModel {
    name: String,
    state: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    read_bytes: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    total_bytes: Option<u64>,
    /// Whether the last load failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<&'static str>,
}

#[derive(Serialize)]
struct Version {
    version: &'static str,
}

/// Whether the process answers and its engines run: one that has ended needs another process.
pub(crate) async fn health(
    State(app): State<App>,
    Extension(key): Extension<HasKey>,
) -> Result<Response, ApiError> {
    check_engines(&app)?;
    Ok(json(&Report::new("ok", app.models(), key)))
}

/// Whether requests are taken: the models of the start are loaded, their engines run, and the server
/// does not shut down.
pub(crate) async fn ready(
    State(app): State<App>,
    Extension(key): Extension<HasKey>,
) -> Result<Response, ApiError> {
    if app.lifecycle.is_draining() {
        return Err(ApiError::draining());
    }
    if !app.has_started() {
        let mut response = json(&Report::new("loading", app.models(), key));
        *response.status_mut() = StatusCode::SERVICE_UNAVAILABLE;
        return Ok(response);
    }
    check_engines(&app)?;
    Ok(json(&Report::new("ready", app.models(), key)))
}

fn check_engines(app: &App) -> Result<(), ApiError> {
    for model in app.loaded() {
        model.engine.latest_metrics().map_err(|error| ApiError::of_run(&error))?;
    }
    Ok(())
}

pub(crate) async fn version() -> Response {
    json(&Version { version: env!("CARGO_PKG_VERSION") })
}

/// Metrics in the text format of Prometheus, as they were after the last step. A model that is being
/// unloaded is left out: its counts are neither those of an engine nor of those that have ended.
pub(crate) async fn metrics(State(app): State<App>) -> Response {
    let views = app.models().into_iter().filter(|view| view.state != LoadState::Unloading);
    let with_counts = views.filter_map(|view: ModelView| {
        let mut counts = view.past.clone();
        if let Some(model) = &view.model {
            counts.add(&model.engine.latest_metrics().ok()?);
        }
        Some((view, counts))
    });
    let models: Vec<_> = with_counts.collect();
    let text = prometheus::text(&models, &app.metrics);
    ([(CONTENT_TYPE, METRICS_TYPE)], text).into_response()
}

impl Report {
    fn new(status: &'static str, views: Vec<ModelView>, HasKey(has_key): HasKey) -> Self {
        Self { status, models: has_key.then(|| Models::new(views)) }
    }
}

impl Models {
    fn new(views: Vec<ModelView>) -> Self {
        let is_loaded = |view: &ModelView| view.state == LoadState::Loaded;
        let (loaded, others): (Vec<_>, Vec<_>) = views.into_iter().partition(is_loaded);
        let models = loaded.into_iter().map(|view| view.name).collect();
        Self { models, others: others.into_iter().map(OtherModel::new).collect() }
    }
}

impl OtherModel {
    fn new(view: ModelView) -> Self {
        let (read_bytes, total_bytes) = match view.state {
            LoadState::Loading(read, total) => (Some(read), Some(total)),
            _ => (None, None),
        };
        let state = view.state.as_str();
        Self {
            name: view.name,
            state,
            read_bytes,
            total_bytes,
            error: view.has_failed.then_some(FAILURE),
        }
    }
}
