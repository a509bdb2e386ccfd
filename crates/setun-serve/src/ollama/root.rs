//! The root, the version, and routes that would manage models.

use axum::{
    extract::Request,
    response::{IntoResponse, Response},
};
use serde::Serialize;

use crate::error::{ApiError, json};

/// The version of Ollama that has what is served of its API; log-probabilities came last. Clients refuse
/// servers that are too old for them: Copilot in VS Code those before 0.6.4.
const API_VERSION: &str = "0.12.11";

#[derive(Serialize)]
struct Version {
    version: &'static str,
}

/// `GET /` and `HEAD /`, by which clients find a server.
pub(crate) async fn root() -> Response {
    "setun is running".into_response()
}

/// `GET /api/version`.
pub(crate) async fn version() -> Response {
    json(&Version { version: API_VERSION })
}

/// Models are managed where the server runs.
pub(crate) async fn refuse(request: Request) -> Response {
    let path = request.uri().path();
    let message = format!(
        "{path}: clients do not change the models of this server; \
         `setun models pull` and `setun models rm` do, where it runs"
    );
    ApiError::forbidden(message).into_response()
}
