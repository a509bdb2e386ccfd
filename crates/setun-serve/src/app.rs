//! State that all handlers share.

use std::{
    sync::Arc,
    time::{SystemTime, UNIX_EPOCH},
};

use axum::{extract::Request, http::header::CONTENT_LENGTH};
use futures::StreamExt;
use setun::Engine;

use crate::{
    error::ApiError,
    fields::Fields,
    lifecycle::{Lifecycle, RequestGuard},
    server_metrics::ServerMetrics,
    token_words::TokenWords,
};

/// A handle to the state.
pub(crate) type App = Arc<AppState>;

#[derive(Debug)]
pub(crate) struct AppState {
    pub(crate) engine: Engine,
    /// Names of the model: its own, and its aliases.
    names: Vec<String>,
    /// Second of the Unix epoch at which the server began.
    pub(crate) created: u64,
    pub(crate) lifecycle: Lifecycle,
    pub(crate) metrics: ServerMetrics,
    pub(crate) token_words: Arc<TokenWords>,
    max_body_bytes: usize,
}

impl AppState {
    pub(crate) fn new(
        engine: Engine,
        aliases: Vec<String>,
        lifecycle: Lifecycle,
        max_body_bytes: usize,
    ) -> Self {
        let names = std::iter::once(engine.model_name().to_owned()).chain(aliases).collect();
        let token_words = Arc::default();
        let metrics = ServerMetrics::default();
        Self {
            engine,
            names,
            created: unix_seconds(),
            lifecycle,
            metrics,
            token_words,
            max_body_bytes,
        }
    }

    /// Counts a request and reads its body.
    pub(crate) async fn accept(
        &self,
        request: Request,
    ) -> Result<(Fields, RequestGuard), ApiError> {
        let guard = self.lifecycle.begin()?;
        let limit = self.max_body_bytes;
        let length = request.headers().get(CONTENT_LENGTH);
        let length = length.and_then(|length| length.to_str().ok()?.parse::<u64>().ok());
        if length.is_some_and(|length| length > limit as u64) {
            return Err(ApiError::body_too_large(limit));
        }
        let mut body = vec![];
        let mut pieces = request.into_body().into_data_stream();
        while let Some(piece) = pieces.next().await {
            body.extend_from_slice(&piece.map_err(|_| ApiError::broken_body())?);
            if body.len() > limit {
                return Err(ApiError::body_too_large(limit));
            }
        }
        Ok((Fields::read(&body)?, guard))
    }

    /// The model that a request names, which is the only one by default.
    pub(crate) fn model(&self, fields: &mut Fields) -> Result<String, ApiError> {
        match fields.text("model")? {
            Some(name) => self.find(name),
            None => Ok(self.names.first().cloned().unwrap_or_default()),
        }
    }

    /// The model of a name.
    pub(crate) fn find(&self, name: String) -> Result<String, ApiError> {
        if self.names.contains(&name) {
            Ok(name)
        } else {
            Err(ApiError::unknown_model(&name, &self.names))
        }
    }

    pub(crate) fn names(&self) -> &[String] {
        &self.names
    }
}

pub(crate) fn unix_seconds() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs()
}
