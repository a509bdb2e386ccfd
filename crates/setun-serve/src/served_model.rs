//! Models that requests name.

use std::sync::Arc;

use setun::Engine;

use crate::{model_metrics::ModelMetrics, registry::ModelRegistry, token_words::TokenWords};

/// A model under one of its names. Clones share the engine; it stays loaded while a request has
/// one.
#[derive(Clone, Debug)]
pub(crate) struct ServedModel {
    /// The name that the request has, or the model's own.
    pub(crate) name: String,
    pub(crate) engine: Engine,
    pub(crate) metrics: Arc<ModelMetrics>,
    pub(crate) token_words: Arc<TokenWords>,
    _lease: Option<Arc<Lease>>,
}

/// A request's use of a model, until it is dropped.
#[derive(Debug)]
pub(crate) struct Lease {
    registry: ModelRegistry,
    id: u64,
}

impl ServedModel {
    /// A model that may be unloaded at any time.
    pub(crate) fn new(
        name: &str,
        engine: Engine,
        metrics: Arc<ModelMetrics>,
        token_words: Arc<TokenWords>,
    ) -> Self {
        Self { name: name.to_owned(), engine, metrics, token_words, _lease: None }
    }

    /// The same, which stays loaded.
    pub(crate) fn with_lease(self, lease: Lease) -> Self {
        Self { _lease: Some(Arc::new(lease)), ..self }
    }
}

impl Lease {
    /// A use that has been counted.
    pub(crate) fn new(registry: ModelRegistry, id: u64) -> Self {
        Self { registry, id }
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        self.registry.release(self.id);
    }
}
