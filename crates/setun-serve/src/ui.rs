//! The page at `/ui`, and the requests that it lists and cancels.

use axum::{
    extract::{Path, State},
    http::{
        HeaderMap, HeaderName, HeaderValue,
        header::{
            ACCEPT_ENCODING, CACHE_CONTROL, CONTENT_ENCODING, CONTENT_SECURITY_POLICY,
            CONTENT_TYPE, REFERRER_POLICY, VARY, X_CONTENT_TYPE_OPTIONS,
        },
    },
    response::{IntoResponse, Response},
};
use serde::Serialize;

use crate::{
    app::App,
    error::{ApiError, json},
    request_list::ListedRequest,
};

/// The page, as `node ui.mjs` in `web/` builds it.
const PAGE: &[u8] = include_bytes!("../ui/ui.html.gz");

/// Hashes of its script and of its style, which are the only ones that a browser runs.
const POLICY: &str = include_str!("../ui/policy.txt");

/// Headers of the page.
const HEADERS: [(HeaderName, HeaderValue); 7] = [
    (CONTENT_TYPE, HeaderValue::from_static("text/html; charset=utf-8")),
    (CONTENT_ENCODING, HeaderValue::from_static("gzip")),
    (CONTENT_SECURITY_POLICY, HeaderValue::from_static(POLICY)),
    (CACHE_CONTROL, HeaderValue::from_static("no-cache")),
    (REFERRER_POLICY, HeaderValue::from_static("no-referrer")),
    (VARY, HeaderValue::from_static("accept-encoding")),
    (X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff")),
];

#[derive(Serialize)]
struct RequestsUnderWay {
    data: Vec<ListedRequest>,
}

#[derive(Serialize)]
struct Cancelled {
    id: String,
    cancelled: bool,
}

/// The page. It has no secrets, so that it needs no key: what it asks for does.
pub(crate) async fn page(headers: HeaderMap) -> Result<Response, ApiError> {
    if !accepts_gzip(&headers) {
        return Err(ApiError::needs_gzip());
    }
    Ok((HEADERS, PAGE).into_response())
}

/// Requests whose generations run or wait.
pub(crate) async fn requests(State(app): State<App>) -> Response {
    json(&RequestsUnderWay { data: app.lifecycle.under_way().all() })
}

/// Ends the generations of a request.
pub(crate) async fn cancel(
    State(app): State<App>,
    Path(id): Path<String>,
) -> Result<Response, ApiError> {
    if app.lifecycle.under_way().cancel(&id) {
        Ok(json(&Cancelled { id, cancelled: true }))
    } else {
        Err(ApiError::unknown_request(&id))
    }
}

fn accepts_gzip(headers: &HeaderMap) -> bool {
    let values = headers.get_all(ACCEPT_ENCODING).iter().filter_map(|value| value.to_str().ok());
    let mut codings = values.flat_map(|value| value.split(','));
    codings.any(|coding| {
        let (name, weight) = coding.split_once(';').unwrap_or((coding, ""));
        let is_refused = weight.trim().strip_prefix("q=").and_then(|weight| weight.parse().ok());
        matches!(name.trim(), "gzip" | "*") && is_refused != Some(0.0)
    })
}
