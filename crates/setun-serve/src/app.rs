//! State that all handlers share.

use std::{pin::pin, sync::Arc, time::Duration};

use axum::{
    body::{Body, Bytes},
    extract::Request,
    http::header::CONTENT_LENGTH,
};
use futures::{Stream, StreamExt, stream};
use tokio::time::{Instant, timeout};

use crate::{
    api_keys::KeyHash,
    blocking::beside,
    content_encoding::ContentEncoding,
    error::ApiError,
    fields::Fields,
    files::service::Batches,
    lifecycle::{Lifecycle, RequestGuard},
    limits::Limiter,
    registry::{KeepAlive, ModelRegistry, ModelView},
    request_id::RequestId,
    request_list::RequestOrigin,
    served_model::ServedModel,
    server_metrics::ServerMetrics,
    spans::{RequestSpan, SpanExporter},
    unix_time::unix_seconds,
};

/// Bytes a second that a body must have on average, beside the time that it may pause.
const MIN_BODY_RATE: u64 = 500;

/// A handle to the state.
pub(crate) type App = Arc<AppState>;

#[derive(Debug)]
pub(crate) struct AppState {
    registry: ModelRegistry,
    /// Second of the Unix epoch at which the server began.
    pub(crate) created: u64,
    pub(crate) lifecycle: Lifecycle,
    pub(crate) metrics: ServerMetrics,
    limiter: Arc<Limiter>,
    max_body_bytes: usize,
    spans: Option<SpanExporter>,
    batches: Option<Arc<Batches>>,
}

impl AppState {
    pub(crate) fn new(
        registry: ModelRegistry,
        lifecycle: Lifecycle,
        limiter: Arc<Limiter>,
        max_body_bytes: usize,
        metrics: ServerMetrics,
    ) -> Self {
        let (created, spans, batches) = (unix_seconds(), None, None);
        Self { registry, created, lifecycle, metrics, limiter, max_body_bytes, spans, batches }
    }

    /// With files and batches.
    pub(crate) fn with_batches(self, batches: Option<Batches>) -> Self {
        Self { batches: batches.map(Arc::new), ..self }
    }

    /// With what exports spans of requests.
    pub(crate) fn with_spans(self, spans: Option<SpanExporter>) -> Self {
        Self { spans, ..self }
    }

    /// Counts a request.
    pub(crate) fn begin(&self, request: &mut Request) -> Result<RequestGuard, ApiError> {
        let mut guard = self.lifecycle.begin(origin(request))?;
        guard.limit(&self.limiter, request.extensions_mut().remove());
        guard.warnings = request.extensions_mut().remove().unwrap_or_default();
        Ok(guard)
    }

    /// Counts a request and reads its body.
    pub(crate) async fn accept(
        &self,
        mut request: Request,
    ) -> Result<(Fields, RequestGuard), ApiError> {
        let mut guard = self.begin(&mut request)?;
        guard.span = self.spans.as_ref().and_then(|exporter| {
            RequestSpan::begin(exporter, request.uri().path(), request.headers())
        });
        let limit = self.max_body_bytes;
        let length = request.headers().get(CONTENT_LENGTH);
        let length = length.and_then(|length| length.to_str().ok()?.parse::<u64>().ok());
        if length.is_some_and(|length| length > limit as u64) {
            return Err(ApiError::body_too_large(limit));
        }
        let encoding = ContentEncoding::of(request.headers())?;
        let mut body = read_body(request, limit, self.limiter.limits.body_timeout).await?;
        if let Some(encoding) = encoding {
            body = beside(move || encoding.decode(&body, limit)).await?;
        }
        Ok((self.limiter.parsing.read(body).await?, guard))
    }

    /// The model that a request names, by default the first one. It is loaded if it is not.
    pub(crate) async fn model(&self, fields: &mut Fields) -> Result<ServedModel, ApiError> {
        match fields.text("model")? {
            Some(name) => self.find(name).await,
            None => Ok(self.registry.acquire(None).await?),
        }
    }

    /// The model of a name. It is loaded if it is not.
    pub(crate) async fn find(&self, name: String) -> Result<ServedModel, ApiError> {
        self.named(Some(name)).await
    }

    /// The same, without a name the first one.
    pub(crate) async fn named(&self, name: Option<String>) -> Result<ServedModel, ApiError> {
        Ok(self.registry.acquire(name).await?)
    }

    /// Files and batches, where the server has them.
    pub(crate) fn batches(&self) -> Result<&Arc<Batches>, ApiError> {
        self.batches.as_ref().ok_or_else(ApiError::files_are_off)
    }

    pub(crate) fn limiter(&self) -> &Arc<Limiter> {
        &self.limiter
    }

    /// Largest body of a request, in bytes.
    pub(crate) fn max_body_bytes(&self) -> usize {
        self.max_body_bytes
    }

    /// How long a model stays that is loaded; its name.
    pub(crate) fn keep_model(
        &self,
        name: Option<String>,
        keep_alive: KeepAlive,
        key: Option<KeyHash>,
    ) -> Result<String, ApiError> {
        Ok(self.registry.keep(name, keep_alive, key)?)
    }

    /// The models that are loaded, to look at.
    pub(crate) fn loaded(&self) -> Vec<ServedModel> {
        self.models().into_iter().filter_map(|view| view.model).collect()
    }

    /// All models, loaded or not.
    pub(crate) fn models(&self) -> Vec<ModelView> {
        self.registry.views()
    }

    /// Whether the models that are loaded at the start are.
    pub(crate) fn has_started(&self) -> bool {
        self.registry.has_started()
    }
}

/// Reads a body of at most `limit` bytes that does not pause for `time` and has the least speed.
async fn read_body(request: Request, limit: usize, time: Duration) -> Result<Vec<u8>, ApiError> {
    let mut pieces = pin!(paced(request.into_body(), time));
    let mut body = vec![];
    while let Some(piece) = pieces.next().await {
        body.extend_from_slice(&piece?);
        if body.len() > limit {
            return Err(ApiError::body_too_large(limit));
        }
    }
    Ok(body)
}

/// The pieces of a body that does not pause for `time` and has the least speed.
pub(crate) fn paced(
    body: Body,
    time: Duration,
) -> impl Stream<Item = Result<Bytes, ApiError>> + Send + 'static {
    let state = (body.into_data_stream(), 0, Instant::now());
    stream::unfold(state, move |(mut pieces, bytes, begun)| async move {
        let left = body_time_left(time, bytes, begun.elapsed());
        let piece = match timeout(left, pieces.next()).await {
            Ok(None) => return None,
            Ok(Some(piece)) => piece.map_err(|_| ApiError::broken_body()),
            Err(_) => Err(ApiError::slow_body(time, MIN_BODY_RATE)),
        };
        let bytes = bytes + piece.as_ref().map_or(0, Bytes::len);
        Some((piece, (pieces, bytes, begun)))
    })
}

/// The longest time of the next piece of a body, after the bytes that have come in this time.
fn body_time_left(time: Duration, bytes: usize, elapsed: Duration) -> Duration {
    let earned = Duration::from_secs(bytes as u64 / MIN_BODY_RATE);
    time.saturating_add(earned).saturating_sub(elapsed).min(time)
}

fn origin(request: &Request) -> RequestOrigin {
    let id = request.extensions().get::<RequestId>();
    let id = id.and_then(|RequestId(id)| id.to_str().ok());
    RequestOrigin {
        api: request.uri().path().to_owned(),
        request_id: id.unwrap_or_default().to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TIME: Duration = Duration::from_secs(30);

    /// The longest time of a body that comes at this rate.
    fn seconds_of(bytes_a_second: usize) -> Option<usize> {
        (0..10_000).find(|&seconds| {
            let elapsed = Duration::from_secs(seconds as u64);
            body_time_left(TIME, seconds * bytes_a_second, elapsed) < Duration::from_secs(1)
        })
    }

    #[test]
    fn a_body_may_pause_and_must_not_drip() {
        assert_eq!(body_time_left(TIME, 0, Duration::ZERO), TIME);
        assert_eq!(body_time_left(TIME, 0, TIME), Duration::ZERO, "nothing has come");
        let late = body_time_left(TIME, 100_000, Duration::from_secs(50));
        assert_eq!(late, TIME, "no pause is longer, whatever has come");
        assert_eq!(seconds_of(1), Some(30), "each byte comes in time");
        assert_eq!(seconds_of(250), Some(59), "half the least speed");
        assert_eq!(seconds_of(500), None);
    }
}
