//! Ids of requests and answers.

use std::{
    fmt::Write as _,
    sync::atomic::{AtomicU64, Ordering},
};

use axum::http::{HeaderName, HeaderValue};

/// The header with the id of a request.
pub(crate) const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// The id of a request, for those who answer it.
#[derive(Clone, Debug)]
pub(crate) struct RequestId(pub(crate) HeaderValue);

/// An id that no other has.
pub(crate) fn new_id(prefix: &str) -> String {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let mut bytes = [0; 12];
    if getrandom::fill(&mut bytes).is_err() {
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        bytes[4..].copy_from_slice(&count.to_be_bytes());
    }
    bytes.iter().fold(prefix.to_owned(), |mut id, byte| {
        let _ = write!(id, "{byte:02x}"); // a string takes all
        id
    })
}
