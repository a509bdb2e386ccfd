//! Routes of health, readiness, version and metrics.

use axum::{
    extract::State,
    http::{HeaderValue, header::CONTENT_TYPE},
    response::{IntoResponse, Response},
};
use serde::Serialize;

use crate::{
    app::App,
    error::{ApiError, json},
    prometheus,
};

/// Type of the text format of Prometheus.
const METRICS_TYPE: HeaderValue = HeaderValue::from_static("text/plain; version=0.0.4");

#[derive(Serialize)]
struct Status<'a> {
    status: &'static str,
    model: &'a str,
}

#[derive(Serialize)]
struct Version {
    version: &'static str,
}

/// Whether the process answers.
pub(crate) async fn health(State(app): State<App>) -> Response {
    json(&Status { status: "ok", model: app.engine.model_name() })
}

/// Whether requests are taken: the engine runs, and the server does not shut down.
pub(crate) async fn ready(State(app): State<App>) -> Result<Response, ApiError> {
    if app.lifecycle.is_draining() {
        return Err(ApiError::draining());
    }
    app.engine.metrics().await.map_err(|error| ApiError::of_run(&error))?;
    Ok(json(&Status { status: "ready", model: app.engine.model_name() }))
}

pub(crate) async fn version() -> Response {
    json(&Version { version: env!("CARGO_PKG_VERSION") })
}

/// Metrics in the text format of Prometheus.
pub(crate) async fn metrics(State(app): State<App>) -> Result<Response, ApiError> {
    let engine = app.engine.metrics().await.map_err(|error| ApiError::of_run(&error))?;
    let text = prometheus::text(app.engine.model_name(), &engine, &app.metrics);
    Ok(([(CONTENT_TYPE, METRICS_TYPE)], text).into_response())
}
