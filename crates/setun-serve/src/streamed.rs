//! Answers that come in pieces.

use std::convert::Infallible;

use axum::{
    body::{Body, Bytes},
    http::{
        HeaderValue,
        header::{CACHE_CONTROL, CONTENT_TYPE},
    },
    response::Response,
};
use futures::Stream;

/// An answer of pieces, each of which is for a client as soon as it is there.
pub(crate) fn streamed(
    pieces: impl Stream<Item = Result<Bytes, Infallible>> + Send + 'static,
    content_type: &'static str,
) -> Response {
    let mut response = Response::new(Body::from_stream(pieces));
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    // nginx hands pieces on at once then.
    headers.insert("x-accel-buffering", HeaderValue::from_static("no"));
    response
}
