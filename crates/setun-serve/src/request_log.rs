//! Ids of requests in answers, and the log of both.

use std::time::Instant;

use axum::{
    extract::{Request, State},
    http::HeaderValue,
    middleware::Next,
    response::Response,
};
use tracing::{Instrument, info, info_span};

use crate::{
    app::App,
    excerpt::excerpt,
    request_id::{REQUEST_ID, RequestId, new_id},
    trace_context::TraceContext,
    warnings::Warnings,
};

/// Longest id that is taken from a client, in bytes.
const MAX_BYTES: usize = 128;

/// Gives an answer the id of its request, or a new one, and logs both without their contents. What is
/// done for it has a span with the id, and with the trace that the client names.
pub(crate) async fn identify(State(app): State<App>, mut request: Request, next: Next) -> Response {
    let begun = Instant::now();
    let given = request.headers().get(REQUEST_ID).filter(|id| is_usable(id)).cloned();
    let id = given.or_else(|| HeaderValue::try_from(new_id("req_")).ok());
    if let Some(id) = &id {
        request.extensions_mut().insert(RequestId(id.clone()));
    }
    let warnings = Warnings::default();
    request.extensions_mut().insert(warnings.clone());
    let (method, path) = (request.method().clone(), excerpt(request.uri().path()));
    let trace = TraceContext::of(request.headers());
    let span = info_span!(
        target: "setun_serve", "request",
        request_id = id.as_ref().and_then(|id| id.to_str().ok()), %method, path,
        trace_id = trace.as_ref().map(TraceContext::trace_id),
        parent_id = trace.as_ref().map(TraceContext::parent_id),
    );
    let mut response = next.run(request).instrument(span.clone()).await;
    let status = response.status().as_u16();
    app.metrics.add_response(status);
    span.in_scope(|| {
        info!(target: "setun_serve", status, time = ?begun.elapsed(), "answered");
    });
    warnings.write(response.headers_mut());
    if let Some(id) = id {
        response.headers_mut().insert(REQUEST_ID, id);
    }
    response
}

fn is_usable(id: &HeaderValue) -> bool {
    (1..=MAX_BYTES).contains(&id.len()) && id.as_bytes().iter().all(u8::is_ascii_graphic)
}
