//! A model's place in a registry: not loaded, being loaded, loaded, or being unloaded.

use std::{
    collections::BTreeSet,
    mem,
    sync::Arc,
    time::{Duration, Instant},
};

use setun::{Clock, Engine, EngineMetrics};
use tokio::sync::{Notify, oneshot};

use super::{
    KeepAlive, ModelRegistry,
    error::LoadError,
    spec::{LoadProgress, ModelSpec},
};
use crate::{
    api_keys::KeyHash,
    model_metrics::ModelMetrics,
    served_model::{Lease, ServedModel},
    token_words::TokenWords,
};

/// A model that was named in a configuration.
pub(super) struct Slot {
    pub(super) id: u64,
    pub(super) spec: ModelSpec,
    pub(super) phase: Phase,
    /// Requests that wait for it.
    pub(super) waiters: Vec<Waiter>,
    /// Bytes of the budget that it has.
    pub(super) bytes: u64,
    /// Whether it is named no more: it ends after its requests.
    pub(super) is_removed: bool,
    pub(super) metrics: Arc<ModelMetrics>,
    /// Counts of engines that have ended.
    pub(super) past: EngineMetrics,
    /// Positions of a sequence, once it has been loaded.
    pub(super) context_length: Option<usize>,
    /// Whether the last load failed. Why is in the log.
    pub(super) has_failed: bool,
    pub(super) loads: u64,
    pub(super) unloads: u64,
    pub(super) failures: u64,
}

/// Where a model is.
pub(super) enum Phase {
    Unloaded,
    /// It waits for room, or is read.
    Loading(LoadProgress),
    Loaded(Loaded),
    Unloading,
}

/// A model in memory.
pub(super) struct Loaded {
    pub(super) engine: Engine,
    token_words: Arc<TokenWords>,
    /// Requests under way.
    pub(super) uses: usize,
    /// When the last of them ended.
    pub(super) used: Instant,
    /// Whether another model waits for its room: then new requests wait for the next load.
    pub(super) is_wanted: bool,
    pub(super) keep_alive: KeepAlive,
    /// Keys whose requests have used it.
    pub(super) keys: BTreeSet<KeyHash>,
    /// Told when the last request has ended.
    pub(super) idle: Arc<Notify>,
}

/// A request's use of a model, which was counted.
#[derive(Debug)]
struct Use {
    registry: ModelRegistry,
    id: u64,
}

impl Lease for Use {
    fn used_by(&self, key: KeyHash) {
        self.registry.note_key(self.id, key);
    }
}

impl Drop for Use {
    fn drop(&mut self) {
        self.registry.release(self.id);
    }
}

/// A request that waits for a model, and the name that it has for it.
pub(super) struct Waiter {
    pub(super) name: String,
    pub(super) answer: oneshot::Sender<Answer>,
}

type Answer = Result<ServedModel, LoadError>;

/// Answers of waiters, to be sent without the lock: what nobody takes is dropped, which locks.
#[must_use]
#[derive(Default)]
pub(super) struct Answers(Vec<(oneshot::Sender<Answer>, Answer)>);

impl Answers {
    pub(super) fn send(self) {
        for (sender, answer) in self.0 {
            drop(sender.send(answer)); // of a client that has left
        }
    }
}

impl Loaded {
    pub(super) fn new(engine: Engine, keep_alive: KeepAlive, used: Instant) -> Self {
        let (token_words, idle, keys) = (Arc::default(), Arc::default(), BTreeSet::new());
        Self { engine, token_words, uses: 0, used, is_wanted: false, keep_alive, keys, idle }
    }

    /// Time until it is unloaded if no request comes; none if it stays.
    pub(super) fn expires_in(&self, clock: &Clock) -> Option<Duration> {
        let KeepAlive::For(time) = self.keep_alive else { return None };
        let idle = if self.uses == 0 { clock.since(self.used) } else { Duration::ZERO };
        Some(time.saturating_sub(idle))
    }
}

impl Slot {
    pub(super) fn new(id: u64, spec: ModelSpec) -> Self {
        Self {
            id,
            spec,
            phase: Phase::Unloaded,
            waiters: vec![],
            bytes: 0,
            is_removed: false,
            metrics: Arc::default(),
            past: EngineMetrics::default(),
            context_length: None,
            has_failed: false,
            loads: 0,
            unloads: 0,
            failures: 0,
        }
    }

    /// Takes what a configuration says of it now.
    pub(super) fn respecify(&mut self, spec: ModelSpec, default: KeepAlive) {
        self.keep(spec.keep_alive.unwrap_or(default));
        self.spec = spec;
    }

    /// Whether a key may say how long the model stays: without keys, or as long as it alone uses it.
    pub(super) fn is_kept_by(&self, key: Option<KeyHash>) -> bool {
        let Some(key) = key else { return true };
        self.loaded().is_none_or(|loaded| loaded.keys.iter().all(|other| *other == key))
    }

    /// Keeps the model for this time without requests, if it is loaded.
    pub(super) fn keep(&mut self, keep_alive: KeepAlive) {
        if let Some(loaded) = self.loaded_mut() {
            loaded.keep_alive = keep_alive;
            loaded.idle.notify_one();
        }
    }

    pub(super) fn loaded(&self) -> Option<&Loaded> {
        match &self.phase {
            Phase::Loaded(loaded) => Some(loaded),
            _ => None,
        }
    }

    pub(super) fn loaded_mut(&mut self) -> Option<&mut Loaded> {
        match &mut self.phase {
            Phase::Loaded(loaded) => Some(loaded),
            _ => None,
        }
    }

    /// Whether no request is under way in a loaded model that may be unloaded.
    pub(super) fn is_idle(&self) -> bool {
        !self.spec.is_pinned && self.loaded().is_some_and(|loaded| loaded.uses == 0)
    }

    /// The model for a request, if it is loaded and nothing else waits for its room.
    pub(super) fn serve(&mut self, registry: &ModelRegistry, name: &str) -> Option<ServedModel> {
        let id = self.id;
        let metrics = Arc::clone(&self.metrics);
        let loaded = self.loaded_mut().filter(|loaded| !loaded.is_wanted)?;
        loaded.uses += 1;
        let lease = Use { registry: registry.clone(), id };
        let (engine, token_words) = (loaded.engine.clone(), Arc::clone(&loaded.token_words));
        Some(ServedModel::new(name, engine, metrics, token_words).with_lease(lease))
    }

    /// The model to look at, which keeps nothing from being unloaded.
    pub(super) fn view(&self) -> Option<ServedModel> {
        let Loaded { engine, token_words, .. } = self.loaded()?;
        let metrics = Arc::clone(&self.metrics);
        let (engine, token_words) = (engine.clone(), Arc::clone(token_words));
        Some(ServedModel::new(&self.spec.name, engine, metrics, token_words))
    }

    /// Answers those that wait: with the model if it is loaded, else with this error.
    pub(super) fn answer(
        &mut self,
        registry: &ModelRegistry,
        error: Option<&LoadError>,
    ) -> Answers {
        let mut answers = Answers::default();
        for waiter in mem::take(&mut self.waiters) {
            let Waiter { name, answer } = waiter;
            if answer.is_closed() {
                continue; // its client has left
            }
            match (self.serve(registry, &name), error) {
                (Some(model), _) => answers.0.push((answer, Ok(model))),
                (None, Some(error)) => answers.0.push((answer, Err(error.clone()))),
                (None, None) => self.waiters.push(Waiter { name, answer }),
            }
        }
        answers
    }

    /// Whether somebody waits still.
    pub(super) fn is_awaited(&self) -> bool {
        self.waiters.iter().any(|waiter| !waiter.answer.is_closed())
    }

    /// Begins to unload a loaded model.
    pub(super) fn unload(&mut self) -> Option<Engine> {
        match mem::replace(&mut self.phase, Phase::Unloading) {
            Phase::Loaded(loaded) => Some(loaded.engine),
            other => {
                self.phase = other;
                None
            }
        }
    }

    /// Keeps the counts of an engine that ends.
    pub(super) fn add_past(&mut self, metrics: &EngineMetrics) {
        self.past.add(metrics);
        // What was there is gone with the engine.
        let past = &mut self.past;
        past.memory = EngineMetrics::default().memory;
        (past.waiting, past.running) = (0, 0);
        (past.blocks, past.used_blocks, past.cached_blocks) = (0, 0, 0);
    }
}
