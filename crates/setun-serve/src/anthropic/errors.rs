//! Errors in the shape that clients of Anthropic's API read.

use axum::{
    body::Body,
    extract::Request,
    http::{HeaderName, HeaderValue, StatusCode},
    middleware::Next,
    response::Response,
};
use serde::Serialize;

use crate::{
    error::{ApiError, json},
    request_id::RequestId,
};

/// The routes that have this shape, with those below.
const ROUTE: &str = "/v1/messages";

/// The header that clients of this API look for.
const ID_HEADER: HeaderName = HeaderName::from_static("request-id");

#[derive(Serialize)]
pub(super) struct ErrorBody<'a> {
    r#type: &'static str,
    error: ErrorFields<'a>,
    request_id: Option<&'a str>,
}

#[derive(Serialize)]
struct ErrorFields<'a> {
    r#type: &'static str,
    message: &'a str,
}

/// Writes the errors of this API's routes in its shape, those of layers below too.
pub(crate) async fn shape_errors(request: Request, next: Next) -> Response {
    let is_own = is_own(request.uri().path());
    let id = request.extensions().get::<RequestId>().cloned();
    let mut response = next.run(request).await;
    if !is_own {
        return response;
    }
    if let Some(error) = response.extensions_mut().remove::<ApiError>() {
        // The other headers stay: those of CORS, and when to come again.
        *response.body_mut() = body(&error, id.as_ref());
    }
    if let Some(RequestId(id)) = id {
        response.headers_mut().insert(ID_HEADER, id);
    }
    response
}

fn is_own(path: &str) -> bool {
    path.strip_prefix(ROUTE).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

fn body(error: &ApiError, id: Option<&RequestId>) -> Body {
    json(&error_body(error, id)).into_body()
}

pub(super) fn error_body<'a>(error: &'a ApiError, id: Option<&'a RequestId>) -> ErrorBody<'a> {
    let error = ErrorFields { r#type: kind(error.status()), message: error.message() };
    let request_id = id.and_then(|RequestId(id): &RequestId| HeaderValue::to_str(id).ok());
    ErrorBody { r#type: "error", error, request_id }
}

fn kind(status: StatusCode) -> &'static str {
    match status {
        StatusCode::UNAUTHORIZED => "authentication_error",
        StatusCode::FORBIDDEN => "permission_error",
        StatusCode::NOT_FOUND => "not_found_error",
        StatusCode::PAYLOAD_TOO_LARGE => "request_too_large",
        StatusCode::TOO_MANY_REQUESTS => "rate_limit_error",
        StatusCode::SERVICE_UNAVAILABLE => "overloaded_error",
        status if status.is_server_error() => "api_error",
        _ => "invalid_request_error",
    }
}
