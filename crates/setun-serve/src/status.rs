//! Routes of health, readiness, version and metrics.

use axum::{
    extract::State,
    http::{HeaderValue, header::CONTENT_TYPE},
    response::{IntoResponse, Response},
};
use serde::Serialize;
use setun::EngineMetrics;

use crate::{
    app::App,
    error::{ApiError, json},
    prometheus,
    served_model::ServedModel,
};

/// Type of the text format of Prometheus.
const METRICS_TYPE: HeaderValue = HeaderValue::from_static("text/plain; version=0.0.4");

#[derive(Serialize)]
struct Status {
    status: &'static str,
    /// The models that are loaded.
    models: Vec<String>,
}

#[derive(Serialize)]
struct Version {
    version: &'static str,
}

/// Whether the process answers.
pub(crate) async fn health(State(app): State<App>) -> Response {
    json(&Status { status: "ok", models: names(&app.loaded()) })
}

/// Whether requests are taken: the engine runs, and the server does not shut down.
pub(crate) async fn ready(State(app): State<App>) -> Result<Response, ApiError> {
    if app.lifecycle.is_draining() {
        return Err(ApiError::draining());
    }
    let loaded = app.loaded();
    metrics_of(&loaded)?;
    Ok(json(&Status { status: "ready", models: names(&loaded) }))
}

pub(crate) async fn version() -> Response {
    json(&Version { version: env!("CARGO_PKG_VERSION") })
}

/// Metrics in the text format of Prometheus, as they were after the last step.
pub(crate) async fn metrics(State(app): State<App>) -> Result<Response, ApiError> {
    let loaded = app.loaded();
    let engines = metrics_of(&loaded)?;
    let models = loaded.iter().zip(engines);
    let models = models.map(|(model, engine)| (model.name.as_str(), engine, &*model.metrics));
    let text = prometheus::text(models, &app.metrics);
    Ok(([(CONTENT_TYPE, METRICS_TYPE)], text).into_response())
}

fn names(models: &[ServedModel]) -> Vec<String> {
    models.iter().map(|model| model.name.clone()).collect()
}

fn metrics_of(models: &[ServedModel]) -> Result<Vec<EngineMetrics>, ApiError> {
    let metrics: Result<_, _> = models.iter().map(|model| model.engine.latest_metrics()).collect();
    metrics.map_err(|error| ApiError::of_run(&error))
}
