//! Errors in the one shape that clients of the `OpenAI` API read.

use std::time::Duration;

use axum::{
    body::Body,
    http::{
        HeaderValue, StatusCode,
        header::{ACCEPT_ENCODING, CONTENT_TYPE},
    },
    response::{IntoResponse, Response},
};
use serde::Serialize;
use serde_json::Value;
use setun::{EngineError, ErrorCode, text::TextError};

use crate::{
    excerpt::{bounded, excerpt},
    suggest::nearest,
};

/// Time after which a request that was refused for lack of room may be sent again.
const RETRY_MILLISECONDS: u64 = 1000;

/// The encodings of bodies that are read.
const ENCODINGS: &str = "gzip, br, zstd";

/// The code of a model that cannot be loaded.
const NOT_LOADED: &str = "model_not_loaded";

/// An error, as a client gets it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ApiError {
    status: StatusCode,
    message: String,
    param: Option<String>,
    code: Option<&'static str>,
    /// Time after which it may be sent again, where that is known.
    retry_after: Option<Duration>,
}

/// The JSON form of an error.
#[derive(Serialize)]
pub(crate) struct ErrorBody<'a> {
    error: ErrorFields<'a>,
}

#[derive(Serialize)]
struct ErrorFields<'a> {
    message: &'a str,
    r#type: &'static str,
    param: Option<&'a str>,
    code: Option<&'static str>,
}

impl ApiError {
    pub(crate) fn new(status: StatusCode, code: &'static str, message: impl Into<String>) -> Self {
        let message = bounded(message.into());
        Self { status, message, param: None, code: Some(code), retry_after: None }
    }

    /// A field with a value that is not taken.
    pub(crate) fn invalid(param: &str, reason: impl AsRef<str>) -> Self {
        Self {
            param: Some(excerpt(param)),
            ..Self::new(
                StatusCode::BAD_REQUEST,
                "invalid_value",
                format!("{}: {}", excerpt(param), reason.as_ref()),
            )
        }
    }

    /// A field with a value of another type.
    pub(crate) fn wrong_type(param: &str, expected: &str, found: &Value) -> Self {
        let reason = format!("expected {expected}, found {}", kind(found));
        Self { code: Some("invalid_type"), ..Self::invalid(param, reason) }
    }

    /// A field that is required and not given.
    pub(crate) fn missing(param: &str, expected: &str) -> Self {
        let reason = format!("expected {expected}, found nothing");
        Self { code: Some("missing_required_parameter"), ..Self::invalid(param, reason) }
    }

    /// A field that would change the answer and is not supported.
    pub(crate) fn unsupported(param: &str, reason: &str) -> Self {
        let reason = format!("not supported: {reason}");
        Self { code: Some("unsupported_parameter"), ..Self::invalid(param, reason) }
    }

    /// A body that is no JSON object.
    pub(crate) fn bad_json(reason: &str) -> Self {
        let message = format!("the body is no JSON object: {reason}");
        Self::new(StatusCode::BAD_REQUEST, "invalid_json", message)
    }

    pub(crate) fn body_too_large(limit: usize) -> Self {
        let message = format!("the body is larger than {limit} bytes");
        Self::new(StatusCode::PAYLOAD_TOO_LARGE, "request_too_large", message)
    }

    /// A body of many small values.
    pub(crate) fn too_many_values(found: usize, most: usize) -> Self {
        let message = format!(
            "the values of the body take some {found} bytes of memory, expected at most {most}"
        );
        Self::new(StatusCode::PAYLOAD_TOO_LARGE, "request_too_large", message)
    }

    /// A body that is compressed in a way that is not read.
    pub(crate) fn unsupported_encoding(found: &str) -> Self {
        let found: String = found.chars().take(60).collect();
        let message = format!("content-encoding: expected {ENCODINGS} or none, found {found:?}");
        Self::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "unsupported_encoding", message)
    }

    /// A body that is not compressed as its header says, or not to its end.
    pub(crate) fn broken_encoding(name: &str) -> Self {
        let message = format!("the body is no {name}, or a part of it, as `content-encoding` says");
        Self::new(StatusCode::BAD_REQUEST, "broken_encoding", message)
    }

    /// A body that ended early.
    pub(crate) fn broken_body() -> Self {
        Self::new(StatusCode::BAD_REQUEST, "incomplete_body", "the body ended early")
    }

    pub(crate) fn unknown_model(found: &str, known: &[String]) -> Self {
        let meant = nearest(found, known);
        let found = excerpt(format_args!("{found:?}"));
        let meant = meant.map(|meant| format!("; did you mean {meant:?}?")).unwrap_or_default();
        // The server's own names are not cut.
        let message = format!("model: expected {}, found {found}{meant}", known.join(" or "));
        let param = Some("model".to_owned());
        Self { message, param, ..Self::new(StatusCode::NOT_FOUND, "model_not_found", "") }
    }

    pub(crate) fn unknown_request(id: &str) -> Self {
        let message = format!("no request {} is under way", excerpt(format_args!("{id:?}")));
        Self::new(StatusCode::NOT_FOUND, "request_not_found", message)
    }

    /// A page that is kept compressed.
    pub(crate) fn needs_gzip() -> Self {
        let message = "the page needs a client that accepts gzip (curl --compressed)";
        Self::new(StatusCode::NOT_ACCEPTABLE, "not_acceptable", message)
    }

    pub(crate) fn no_route(path: &str) -> Self {
        Self::new(StatusCode::NOT_FOUND, "unknown_url", format!("there is no {}", excerpt(path)))
    }

    pub(crate) fn wrong_method(method: &str, path: &str) -> Self {
        let message = format!("{} does not take {}", excerpt(path), excerpt(method));
        Self::new(StatusCode::METHOD_NOT_ALLOWED, "method_not_allowed", message)
    }

    pub(crate) fn bad_key() -> Self {
        let message =
            "expected `Authorization: Bearer KEY` or `x-api-key: KEY` with a key of this server";
        Self::new(StatusCode::UNAUTHORIZED, "invalid_api_key", message)
    }

    /// More than a client may have at once, or all clients together.
    pub(crate) fn too_many(message: impl Into<String>) -> Self {
        Self::new(StatusCode::TOO_MANY_REQUESTS, "rate_limit_exceeded", message)
    }

    /// The same, which may be sent again after a time.
    pub(crate) fn after(self, time: Duration) -> Self {
        Self { retry_after: Some(time), ..self }
    }

    /// A prompt with more tokens than one may have. `found` is their number, or a bound of it in words.
    pub(crate) fn prompt_too_long(param: &str, found: &str, most: usize) -> Self {
        let reason = format!("expected {most} tokens or less, found {found}");
        Self { code: Some("context_length_exceeded"), ..Self::invalid(param, reason) }
    }

    /// A text with more bytes than are tokenized.
    pub(crate) fn text_too_long(param: &str, found: usize, most: usize) -> Self {
        let reason = format!("expected {most} bytes or less, found {found}");
        Self { code: Some("context_length_exceeded"), ..Self::invalid(param, reason) }
    }

    /// A body that does not come.
    pub(crate) fn slow_body(limit: Duration, rate: u64) -> Self {
        let seconds = limit.as_secs_f64();
        let message = format!(
            "the body came too slowly: expected no pause of {seconds} s, and {rate} bytes a second after that time"
        );
        Self::new(StatusCode::REQUEST_TIMEOUT, "request_timeout", message)
    }

    pub(crate) fn forbidden(message: impl Into<String>) -> Self {
        Self::new(StatusCode::FORBIDDEN, "forbidden", message)
    }

    pub(crate) fn draining() -> Self {
        let message = "the server is shutting down";
        Self::new(StatusCode::SERVICE_UNAVAILABLE, "shutting_down", message)
    }

    /// A model that cannot be loaded.
    pub(crate) fn not_loaded(message: impl Into<String>) -> Self {
        Self::new(StatusCode::SERVICE_UNAVAILABLE, NOT_LOADED, message)
    }

    /// A model that takes more memory than the budget has.
    pub(crate) fn no_room(message: impl Into<String>) -> Self {
        Self::new(StatusCode::INSUFFICIENT_STORAGE, "insufficient_memory", message)
    }

    /// A fault of the server.
    pub(crate) fn internal(message: impl Into<String>) -> Self {
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, "internal_error", message)
    }

    /// The error of a request that the engine has not begun: whatever is wrong is of the request,
    /// unless the engine has no room or is gone.
    pub(crate) fn of_request(error: &EngineError, prompt: &str) -> Self {
        let of_run = Self::of_run(error);
        let (status, code) = match error.code() {
            ErrorCode::ContextFull => (StatusCode::BAD_REQUEST, "context_length_exceeded"),
            ErrorCode::UnsupportedModel => (StatusCode::BAD_REQUEST, "unsupported_model"),
            ErrorCode::BadCheckpoint | ErrorCode::Cancelled | ErrorCode::Truncated => {
                (StatusCode::BAD_REQUEST, "invalid_value")
            }
            _ => (of_run.status, of_run.code.unwrap_or("internal_error")),
        };
        let is_prompt = error.code() == ErrorCode::ContextFull;
        let param = if is_prompt { Some(prompt.to_owned()) } else { param(error, prompt) };
        Self { status, code: Some(code), param, ..of_run }
    }

    /// Options that make a logit infinite.
    pub(crate) fn overflow(reason: &str) -> Self {
        let message = format!("sampling overflows: {reason}");
        Self::new(StatusCode::BAD_REQUEST, "invalid_value", message)
    }

    /// The error of a generation that had begun.
    pub(crate) fn of_run(error: &EngineError) -> Self {
        let (status, code) = match error.code() {
            ErrorCode::BadOption | ErrorCode::Cancelled => {
                (StatusCode::BAD_REQUEST, "invalid_value")
            }
            ErrorCode::ContextFull => (StatusCode::BAD_REQUEST, "context_length_exceeded"),
            ErrorCode::Busy => (StatusCode::TOO_MANY_REQUESTS, "rate_limit_exceeded"),
            ErrorCode::OutOfMemory => (StatusCode::SERVICE_UNAVAILABLE, "out_of_memory"),
            ErrorCode::Disposed | ErrorCode::DeviceLost | ErrorCode::BackendUnavailable => {
                (StatusCode::SERVICE_UNAVAILABLE, "unavailable")
            }
            _ => (StatusCode::INTERNAL_SERVER_ERROR, "internal_error"),
        };
        Self::new(status, code, error.to_string())
    }

    /// The same of another field.
    pub(crate) fn at(self, param: &str) -> Self {
        Self { param: Some(param.to_owned()), ..self }
    }

    /// The error of an API that has another name for a field.
    pub(crate) fn renamed(mut self, field: &str, name: &str) -> Self {
        if self.param.as_deref() == Some(field) {
            self.param = Some(name.to_owned());
        }
        self
    }

    pub(crate) fn status(&self) -> StatusCode {
        self.status
    }

    /// Its kind.
    pub(crate) fn code(&self) -> &'static str {
        self.code.unwrap_or("error")
    }

    pub(crate) fn message(&self) -> &str {
        &self.message
    }

    /// The error as JSON, for an event of a stream too.
    pub(crate) fn body(&self) -> ErrorBody<'_> {
        let r#type = match self.status {
            StatusCode::TOO_MANY_REQUESTS => "rate_limit_error",
            status if status.is_server_error() => "server_error",
            _ => "invalid_request_error",
        };
        let Self { message, param, code, .. } = self;
        ErrorBody { error: ErrorFields { message, r#type, param: param.as_deref(), code: *code } }
    }
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        let mut response = json(&self.body());
        *response.status_mut() = self.status;
        let headers = response.headers_mut();
        match self.status {
            StatusCode::TOO_MANY_REQUESTS => {
                let milliseconds = self.retry_after.map_or(RETRY_MILLISECONDS, |time| {
                    u64::try_from(time.as_millis()).unwrap_or(u64::MAX).saturating_add(1)
                });
                headers.insert("retry-after-ms", milliseconds.into());
                headers.insert("retry-after", milliseconds.div_ceil(1000).into());
            }
            StatusCode::UNSUPPORTED_MEDIA_TYPE => {
                headers.insert(ACCEPT_ENCODING, HeaderValue::from_static(ENCODINGS));
            }
            StatusCode::UNAUTHORIZED => {
                headers.insert("www-authenticate", HeaderValue::from_static("Bearer"));
            }
            // To load it again at once would fail again.
            StatusCode::SERVICE_UNAVAILABLE if self.code == Some(NOT_LOADED) => {
                headers.insert("x-should-retry", HeaderValue::from_static("false"));
            }
            StatusCode::INSUFFICIENT_STORAGE => {
                headers.insert("x-should-retry", HeaderValue::from_static("false"));
            }
            StatusCode::SERVICE_UNAVAILABLE => {
                headers.insert("x-should-retry", HeaderValue::from_static("true"));
            }
            _ => {}
        }
        // For APIs that have another shape.
        response.extensions_mut().insert(self);
        response
    }
}

/// A value as the body of an answer.
pub(crate) fn json(value: &impl Serialize) -> Response {
    match serde_json::to_vec(value) {
        Ok(bytes) => json_bytes(bytes),
        // Every key of an answer is a string.
        Err(_) => StatusCode::INTERNAL_SERVER_ERROR.into_response(),
    }
}

/// JSON as the body of an answer.
pub(crate) fn json_bytes(bytes: Vec<u8>) -> Response {
    let mut response = Response::new(Body::from(bytes));
    let json = HeaderValue::from_static("application/json");
    response.headers_mut().insert(CONTENT_TYPE, json);
    response
}

/// The field that an error names.
fn param(error: &EngineError, prompt: &str) -> Option<String> {
    let option = match error {
        EngineError::BadOption { option: "constraint", .. } | EngineError::Grammar(_) => {
            "response_format"
        }
        EngineError::BadOption { option: "prompt", .. } => prompt,
        EngineError::BadOption { option, .. } => option,
        EngineError::Text(error) => match error {
            TextError::OptionToken { option, .. }
            | TextError::EmptyOption { option, .. }
            | TextError::NeedsState { option } => option,
            TextError::Tool { .. } => "tools",
            TextError::ToolChoice { .. } => "tool_choice",
            TextError::EmptyStopString { .. } | TextError::StopStrings { .. } => "stop",
            TextError::Encode { .. }
            | TextError::Message { .. }
            | TextError::NoFreeMark
            | TextError::TemplateFailed { .. }
            | TextError::TemplateLimit { .. }
            | TextError::TemplateRefused { .. } => prompt,
            _ => return None,
        },
        _ => return None,
    };
    Some(option.to_owned())
}

/// The type of a JSON value.
fn kind(value: &Value) -> &'static str {
    type IsKind = fn(&Value) -> bool;
    const KINDS: [(IsKind, &str); 5] = [
        (Value::is_boolean, "a boolean"),
        (Value::is_number, "a number"),
        (Value::is_string, "a string"),
        (Value::is_array, "a list"),
        (Value::is_object, "an object"),
    ];
    KINDS.iter().find(|(is_kind, _)| is_kind(value)).map_or("null", |(_, kind)| kind)
}
