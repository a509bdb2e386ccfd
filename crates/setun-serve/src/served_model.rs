//! Models that requests name.

use std::{fmt, sync::Arc};

use setun::Engine;

use crate::{api_keys::KeyHash, model_metrics::ModelMetrics, token_words::TokenWords};

/// A model under one of its names. Clones share the engine; it stays loaded while a request has
/// one.
#[derive(Clone, Debug)]
pub(crate) struct ServedModel {
    /// The name that the request has, or the model's own.
    pub(crate) name: String,
    pub(crate) engine: Engine,
    pub(crate) metrics: Arc<ModelMetrics>,
    pub(crate) token_words: Arc<TokenWords>,
    lease: Option<Arc<dyn Lease>>,
}

/// Keeps a model loaded, until it is dropped.
pub(crate) trait Lease: fmt::Debug + Send + Sync {
    /// Takes note of the key that uses it.
    fn used_by(&self, key: KeyHash);
}

impl ServedModel {
    /// A model that may be unloaded at any time.
    pub(crate) fn new(
        name: &str,
        engine: Engine,
        metrics: Arc<ModelMetrics>,
        token_words: Arc<TokenWords>,
    ) -> Self {
        Self { name: name.to_owned(), engine, metrics, token_words, lease: None }
    }

    /// The same under another handle of its engine.
    pub(crate) fn with_engine(self, engine: Engine) -> Self {
        Self { engine, ..self }
    }

    /// Takes note of the key that uses it, if there is one.
    pub(crate) fn used_by(&self, key: Option<KeyHash>) {
        if let (Some(lease), Some(key)) = (&self.lease, key) {
            lease.used_by(key);
        }
    }

    /// The same, which stays loaded.
    pub(crate) fn with_lease(self, lease: impl Lease + 'static) -> Self {
        Self { lease: Some(Arc::new(lease)), ..self }
    }
}
