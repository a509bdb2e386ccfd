//! Requests under way, and the end of a server that waits for them.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use tokio::sync::watch::Sender;
use tracing::info;

use setun::{Done, Engine, FinishReason, GenerationStream};

use crate::{
    api_keys::KeyHash,
    cache_salt,
    error::ApiError,
    limits::{KeyGuard, Limiter},
    request_list::{RequestList, RequestOrigin},
    spans::RequestSpan,
    warnings::Warnings,
};

/// Counts the requests under way and ends a server gracefully. Clones share their state.
#[derive(Clone, Debug, Default)]
pub struct Lifecycle(Arc<State>);

#[derive(Debug, Default)]
struct State {
    is_draining: Sender<bool>,
    /// Whether the time for requests under way is over.
    is_over: AtomicBool,
    requests: Sender<usize>,
    under_way: RequestList,
}

/// A request under way, until it is dropped.
#[derive(Debug)]
pub(crate) struct RequestGuard {
    state: Arc<State>,
    origin: RequestOrigin,
    /// Where it is listed, while it generates.
    listed: Option<String>,
    pub(crate) limiter: Arc<Limiter>,
    key: Option<KeyGuard>,
    /// Its span, where spans are exported.
    pub(crate) span: Option<RequestSpan>,
    /// Warnings of its answer.
    pub(crate) warnings: Warnings,
}

impl Lifecycle {
    /// Of a server that takes requests.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// From now on new requests are refused with 503, and [`serve`](crate::serve) ends once those
    /// under way have ended. After its grace time the rest of them end with an error.
    pub fn drain(&self) {
        self.0.is_draining.send_replace(true);
    }

    /// Whether new requests are refused.
    #[must_use]
    pub fn is_draining(&self) -> bool {
        *self.0.is_draining.borrow()
    }

    /// Number of requests under way.
    #[must_use]
    pub fn requests(&self) -> usize {
        *self.0.requests.borrow()
    }

    /// Generations under way.
    pub(crate) fn under_way(&self) -> &RequestList {
        &self.0.under_way
    }

    /// Counts a request.
    pub(crate) fn begin(&self, origin: RequestOrigin) -> Result<RequestGuard, ApiError> {
        self.0.requests.send_modify(|requests| *requests += 1);
        let state = Arc::clone(&self.0);
        let (limiter, warnings) = (Arc::default(), Warnings::default());
        let (listed, key, span) = (None, None, None);
        let guard = RequestGuard { state, origin, listed, limiter, key, span, warnings };
        // After it was counted, so that none is taken that the end does not wait for.
        if self.is_draining() { Err(ApiError::draining()) } else { Ok(guard) }
    }

    /// Ends the generations under way, and those that are still to begin, with an error.
    pub(crate) fn cut_off(&self) {
        self.0.is_over.store(true, Ordering::Relaxed);
        self.0.under_way.cancel_all();
    }

    /// Waits until new requests are refused.
    pub(crate) async fn until_draining(&self) {
        let _ = self.0.is_draining.subscribe().wait_for(|is_draining| *is_draining).await;
    }

    /// Waits until no request is under way.
    pub(crate) async fn until_idle(&self) {
        let _ = self.0.requests.subscribe().wait_for(|requests| *requests == 0).await;
    }
}

impl RequestGuard {
    /// Lists the generations of the request until its end.
    pub(crate) fn list(&mut self, model: &str, streams: &[GenerationStream]) {
        if let Some(span) = &self.span {
            span.record_texts(streams.len());
        }
        let texts = streams.iter().map(GenerationStream::cancel_handle).collect();
        let id = self.state.under_way.add(model, self.origin.clone(), texts);
        if self.state.is_over.load(Ordering::Relaxed) {
            self.state.under_way.cancel(&id);
        }
        self.listed = Some(id);
    }

    /// Whether a text was cut off by the end of the server.
    pub(crate) fn was_cut_off(&self, done: &Done) -> bool {
        done.finish_reason == FinishReason::Aborted && self.state.is_over.load(Ordering::Relaxed)
    }

    /// Its salt in the prefix cache, by its own one and by its key.
    pub(crate) fn cache_salt(&self, own: Option<String>) -> Option<String> {
        let salt = match &self.key {
            Some(key) => key.cache_salt(own),
            None => own,
        };
        salt.map(cache_salt::bounded)
    }

    /// The engine for its texts, whose places its key shares with others.
    pub(crate) fn of_tenant(&self, engine: &Engine) -> Engine {
        match self.key.as_ref().and_then(KeyGuard::tenant) {
            Some(tenant) => engine.clone().with_tenant(tenant),
            None => engine.clone(),
        }
    }

    /// Counts the texts of its prompts towards the limit of its key.
    pub(crate) fn take_texts(
        &self,
        engine: &Engine,
        prompts: usize,
        samples: usize,
    ) -> Result<(), ApiError> {
        self.key.as_ref().map_or(Ok(()), |key| key.take_texts(engine, prompts, samples))
    }

    /// The key that it came with.
    pub(crate) fn key(&self) -> Option<KeyHash> {
        self.key.as_ref().and_then(KeyGuard::key)
    }

    /// The same, with its own salt or that of its key.
    pub(crate) fn salted(&self, engine: &Engine, own: Option<String>) -> Engine {
        let engine = self.of_tenant(engine);
        match self.cache_salt(own) {
            Some(salt) => engine.with_cache_salt(salt),
            None => engine,
        }
    }

    /// Adds warnings to its answer. The log has their number alone: they hold a client's words.
    pub(crate) fn warn(&self, warnings: &[String]) {
        if !warnings.is_empty() {
            info!(target: "setun_serve", count = warnings.len(), "the answer has warnings");
            self.warnings.add(warnings);
        }
    }

    /// Adds an error to its span.
    pub(crate) fn failed(&self, error: ApiError) -> ApiError {
        if let Some(span) = &self.span {
            span.record_error(&error);
        }
        error
    }

    /// Holds it to limits, of which its key has a part.
    pub(crate) fn limit(&mut self, limiter: &Arc<Limiter>, key: Option<KeyGuard>) {
        self.limiter = Arc::clone(limiter);
        self.key = key;
    }
}

impl Drop for RequestGuard {
    fn drop(&mut self) {
        if let Some(id) = &self.listed {
            self.state.under_way.remove(id);
        }
        self.state.requests.send_modify(|requests| *requests -= 1);
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;

    use super::*;

    #[test]
    fn requests_under_way_are_waited_for_and_new_ones_refused() {
        let lifecycle = Lifecycle::new();
        let first = lifecycle.begin(RequestOrigin::default()).expect("it is taken");
        assert_eq!(lifecycle.requests(), 1);
        assert!(lifecycle.until_draining().now_or_never().is_none());
        lifecycle.drain();
        assert!(lifecycle.until_draining().now_or_never().is_some());
        assert!(lifecycle.begin(RequestOrigin::default()).is_err());
        assert!(lifecycle.until_idle().now_or_never().is_none());
        drop(first);
        assert!(lifecycle.until_idle().now_or_never().is_some());
    }
}
