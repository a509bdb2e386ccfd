//! Models that requests name.

use std::sync::Arc;

use setun::Engine;

use crate::{model_metrics::ModelMetrics, token_words::TokenWords};

/// A model under one of its names. Clones share the engine.
#[derive(Clone, Debug)]
pub(crate) struct ServedModel {
    /// The name that the request has, or the model's own.
    pub(crate) name: String,
    pub(crate) engine: Engine,
    pub(crate) metrics: Arc<ModelMetrics>,
    pub(crate) token_words: Arc<TokenWords>,
}

impl ServedModel {
    /// An engine under its model's own name.
    pub(crate) fn new(engine: Engine) -> Self {
        let name = engine.model_name().to_owned();
        Self { name, engine, metrics: Arc::default(), token_words: Arc::default() }
    }
}
