//! Models of a registry, as routes list them.

use std::{sync::Arc, time::Duration};

use setun::EngineMetrics;

use super::{
    ModelRegistry,
    slot::{Phase, Slot},
};
use crate::{model_metrics::ModelMetrics, served_model::ServedModel};

/// A model, loaded or not.
#[derive(Clone, Debug)]
pub(crate) struct ModelView {
    /// The model's own name.
    pub(crate) name: String,
    pub(crate) aliases: Vec<String>,
    pub(crate) state: LoadState,
    /// Whether the last load failed.
    pub(crate) has_failed: bool,
    /// Positions of a sequence, once it has been loaded.
    pub(crate) context_length: Option<usize>,
    pub(crate) metrics: Arc<ModelMetrics>,
    /// Counts of its engines that have ended.
    pub(crate) past: EngineMetrics,
    /// Bytes of the budget that it has.
    pub(crate) bytes: u64,
    /// Time until it is unloaded if no request comes.
    pub(crate) expires_in: Option<Duration>,
    pub(crate) loads: u64,
    pub(crate) unloads: u64,
    pub(crate) failures: u64,
    /// The engine, if it is loaded.
    pub(crate) model: Option<ServedModel>,
}

/// Where a model is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LoadState {
    Unloaded,
    /// Bytes that have been read, and those of the whole model.
    Loading(u64, u64),
    Loaded,
    Unloading,
}

impl ModelRegistry {
    /// The models in the order of the configuration.
    pub(crate) fn views(&self) -> Vec<ModelView> {
        let state = self.lock();
        let view = |slot: &Slot| ModelView {
            name: slot.spec.name.clone(),
            aliases: slot.spec.aliases.clone(),
            state: match &slot.phase {
                Phase::Unloaded => LoadState::Unloaded,
                Phase::Loading(progress) => {
                    let (read, total) = progress.get();
                    LoadState::Loading(read, total)
                }
                Phase::Loaded(_) => LoadState::Loaded,
                Phase::Unloading => LoadState::Unloading,
            },
            has_failed: slot.has_failed,
            context_length: slot.context_length,
            metrics: Arc::clone(&slot.metrics),
            past: slot.past.clone(),
            bytes: slot.bytes,
            expires_in: slot
                .loaded()
                .filter(|_| !slot.spec.is_pinned)
                .and_then(|loaded| loaded.expires_in(&state.clock)),
            loads: slot.loads,
            unloads: slot.unloads,
            failures: slot.failures,
            model: slot.view(),
        };
        state.named().map(view).collect()
    }
}

impl LoadState {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Unloaded => "unloaded",
            Self::Loading(..) => "loading",
            Self::Loaded => "loaded",
            Self::Unloading => "unloading",
        }
    }
}

impl ModelView {
    /// All names.
    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        std::iter::once(&self.name).chain(&self.aliases).map(String::as_str)
    }
}
