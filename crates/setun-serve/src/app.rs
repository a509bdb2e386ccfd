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
    request_id::REQUEST_ID,
    request_list::RequestOrigin,
    served_model::ServedModel,
    server_metrics::ServerMetrics,
};

/// A handle to the state.
pub(crate) type App = Arc<AppState>;

#[derive(Debug)]
pub(crate) struct AppState {
    model: ServedModel,
    /// Names of the model: its own, and its aliases.
    names: Vec<String>,
    /// Second of the Unix epoch at which the server began.
    pub(crate) created: u64,
    pub(crate) lifecycle: Lifecycle,
    pub(crate) metrics: ServerMetrics,
    max_body_bytes: usize,
}

impl AppState {
    pub(crate) fn new(
        engine: Engine,
        aliases: Vec<String>,
        lifecycle: Lifecycle,
        max_body_bytes: usize,
        metrics: ServerMetrics,
    ) -> Self {
        let model = ServedModel::new(engine);
        let names = std::iter::once(model.name.clone()).chain(aliases).collect();
        Self { model, names, created: unix_seconds(), lifecycle, metrics, max_body_bytes }
    }

    /// Counts a request and reads its body.
    pub(crate) async fn accept(
        &self,
        request: Request,
    ) -> Result<(Fields, RequestGuard), ApiError> {
        let guard = self.lifecycle.begin(origin(&request))?;
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
    pub(crate) async fn model(&self, fields: &mut Fields) -> Result<ServedModel, ApiError> {
        match fields.text("model")? {
            Some(name) => self.find(name).await,
            None => Ok(self.model.clone()),
        }
    }

    /// The model of a name.
    #[expect(clippy::unused_async, reason = "a model may have to be loaded first")]
    pub(crate) async fn find(&self, name: String) -> Result<ServedModel, ApiError> {
        if self.names.contains(&name) {
            Ok(ServedModel { name, ..self.model.clone() })
        } else {
            Err(ApiError::unknown_model(&name, &self.names))
        }
    }

    /// The models that are loaded.
    pub(crate) fn loaded(&self) -> Vec<ServedModel> {
        vec![self.model.clone()]
    }

    /// The models by each of their names.
    pub(crate) fn models(&self) -> Vec<ServedModel> {
        let named = |name: &String| ServedModel { name: name.clone(), ..self.model.clone() };
        self.names.iter().map(named).collect()
    }
}

fn origin(request: &Request) -> RequestOrigin {
    let id = request.headers().get(REQUEST_ID).and_then(|id| id.to_str().ok());
    RequestOrigin {
        api: request.uri().path().to_owned(),
        request_id: id.unwrap_or_default().to_owned(),
    }
}

pub(crate) fn unix_seconds() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs()
}
