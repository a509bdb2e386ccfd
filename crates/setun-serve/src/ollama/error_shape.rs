//! Errors in the one shape that clients of Ollama's API read.

use axum::{
    body::Body, extract::Request, http::header::CONTENT_LENGTH, middleware::Next,
    response::Response,
};
use serde::Serialize;
use setun::text::escape_line_breaks;

use crate::error::ApiError;

/// Where the routes of the API are.
const ROUTES: &str = "/api/";

/// The JSON form of an error.
#[derive(Serialize)]
pub(super) struct ErrorBody<'a> {
    error: &'a str,
}

impl<'a> ErrorBody<'a> {
    pub(super) fn of(error: &'a ApiError) -> Self {
        Self { error: error.message() }
    }

    /// As a line of an answer.
    pub(super) fn line(&self) -> Vec<u8> {
        let mut line = serde_json::to_vec(self).unwrap_or_default();
        escape_line_breaks(&mut line, 0);
        line.push(b'\n');
        line
    }
}

/// Gives errors of this API's routes its shape, wherever they come from.
pub(crate) async fn shape_errors(request: Request, next: Next) -> Response {
    let is_of_api = request.uri().path().starts_with(ROUTES);
    let mut response = next.run(request).await;
    if let Some(error) = response.extensions_mut().remove::<ApiError>().filter(|_| is_of_api) {
        response.headers_mut().remove(CONTENT_LENGTH);
        *response.body_mut() = Body::from(ErrorBody::of(&error).line());
    }
    response
}
