//! Models of a server: loaded by the first request that names them, unloaded by least recent use.
//!
//! - A load is a task of its own. Requests wait for it, and it goes on when they leave.
//! - One load at a time makes room. It unloads idle models, those first that were not used for the
//!   longest time; where that is not enough, new requests of busy ones wait for a later load.
//! - A model is unloaded when no request is under way in it, never before.

mod error;
mod loading;
mod slot;
mod spec;
mod view;

use std::{
    collections::BTreeSet,
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use futures::future::try_join_all;
use setun::{Clock, Engine};
use tokio::sync::{Notify, oneshot};

pub use error::{DuplicateModel, LoadError};
pub use spec::{KeepAlive, LoadProgress, ModelSpec, OpenError, OpenModel};
pub(crate) use view::{LoadState, ModelView};

use crate::{api_keys::KeyHash, error::ApiError, served_model::ServedModel};
use slot::{Loaded, Phase, Slot, Waiter};

/// The tag that a name has without one.
pub(crate) const LATEST: &str = ":latest";

/// Models of a server. Clones share them.
#[derive(Clone, Default)]
pub struct ModelRegistry(Arc<Shared>);

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    /// Told when a request has ended, or a model was loaded or unloaded.
    changed: Notify,
    /// Held by the load that makes room.
    room: tokio::sync::Mutex<()>,
}

/// What the lock protects.
#[derive(Default)]
struct State {
    /// In the order of the configuration; those that were removed come last.
    slots: Vec<Slot>,
    next: u64,
    budget: Option<u64>,
    keep_alive: KeepAlive,
    clock: Clock,
    is_starting: bool,
}

impl ModelRegistry {
    /// A registry of these models. The first is that of requests that name none.
    ///
    /// # Errors
    ///
    /// If two have the same name.
    pub fn new(models: Vec<ModelSpec>) -> Result<Self, DuplicateModel> {
        let registry = Self::default();
        registry.set_models(models)?;
        Ok(registry)
    }

    /// Bytes of memory that all loaded models may take. Default: no limit.
    #[must_use]
    pub fn memory_budget(self, bytes: u64) -> Self {
        self.set_memory_budget(Some(bytes));
        self
    }

    /// The clock by which models are idle. Default: the system's; tests have one that they move.
    #[must_use]
    pub fn clock(self, clock: Clock) -> Self {
        self.lock().clock = clock;
        self
    }

    /// How long models without requests stay in memory. Default: until their memory is needed.
    #[must_use]
    pub fn keep_alive(self, keep_alive: KeepAlive) -> Self {
        self.set_keep_alive(keep_alive);
        self
    }

    /// As [`memory_budget`](Self::memory_budget), for the loads to come.
    pub fn set_memory_budget(&self, bytes: Option<u64>) {
        self.lock().budget = bytes;
    }

    /// As [`keep_alive`](Self::keep_alive), for the loads to come.
    pub fn set_keep_alive(&self, keep_alive: KeepAlive) {
        self.lock().keep_alive = keep_alive;
    }

    /// Replaces the models. Those of the same name and identity keep running; the others end after
    /// their requests.
    ///
    /// # Errors
    ///
    /// If two have the same name; nothing is changed then.
    pub fn set_models(&self, models: Vec<ModelSpec>) -> Result<(), DuplicateModel> {
        let mut names = BTreeSet::new();
        for name in models.iter().flat_map(ModelSpec::names) {
            if !names.insert(name) {
                return Err(DuplicateModel { name: name.clone() });
            }
        }
        let mut state = self.lock();
        let mut old = std::mem::take(&mut state.slots);
        for spec in models {
            let is_same = |slot: &Slot| {
                let (name, identity) = (&slot.spec.name, &slot.spec.identity);
                !slot.is_removed && (name, identity) == (&spec.name, &spec.identity)
            };
            let mut slot = match old.iter().position(is_same) {
                Some(place) => old.remove(place),
                None => Slot::new(state.next, spec.clone()),
            };
            slot.respecify(spec, state.keep_alive);
            state.next += 1;
            state.slots.push(slot);
        }
        for slot in old {
            state.slots.push(Slot { is_removed: true, ..slot });
        }
        self.end_removed(&mut state);
        drop(state);
        self.0.changed.notify_one();
        Ok(())
    }

    /// Loads a model, if it is not, and waits for it.
    ///
    /// # Errors
    ///
    /// If there is no such model, or it cannot be loaded.
    pub async fn load(&self, name: &str) -> Result<(), LoadError> {
        self.acquire(Some(name.to_owned())).await.map(drop)
    }

    /// Loads models, all at once as far as the budget allows. Until they are loaded, `/ready` answers
    /// 503 with their progress.
    pub fn start(
        &self,
        names: Vec<String>,
    ) -> impl Future<Output = Result<(), LoadError>> + Send + 'static {
        let registry = self.clone();
        registry.lock().is_starting = true;
        async move {
            try_join_all(names.iter().map(|name| registry.load(name))).await?;
            registry.lock().is_starting = false;
            Ok(())
        }
    }

    /// Names of the models that are never unloaded.
    #[must_use]
    pub fn pinned(&self) -> Vec<String> {
        let state = self.lock();
        let pinned = state.named().filter(|slot| slot.spec.is_pinned);
        pinned.map(|slot| slot.spec.name.clone()).collect()
    }

    /// Names of all models, loaded or not.
    #[must_use]
    pub fn names(&self) -> Vec<String> {
        self.lock().named().map(|slot| slot.spec.name.clone()).collect()
    }

    /// Number of models, loaded or not.
    #[must_use]
    pub fn len(&self) -> usize {
        self.lock().named().count()
    }

    /// Whether there is no model.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Unloads all models, and waits until their memory is free. Requests under way end first.
    pub fn close(&self) {
        let slots = std::mem::take(&mut self.lock().slots);
        slots.into_iter().filter_map(|mut slot| slot.unload()).for_each(Engine::close);
    }

    /// The model of a name, or the first one. It is loaded if it is not.
    pub(crate) async fn acquire(&self, name: Option<String>) -> Result<ServedModel, LoadError> {
        let (name, loading) = {
            let mut state = self.lock();
            let (place, name) = state.find(name)?;
            let slot = &mut state.slots[place];
            if let Some(model) = slot.serve(self, &name) {
                return Ok(model);
            }
            let (answer, loading) = oneshot::channel();
            slot.waiters.retain(|waiter| !waiter.answer.is_closed());
            slot.waiters.push(Waiter { name: name.clone(), answer });
            self.begin_load(slot);
            (name, loading)
        };
        let _waiting = Waiting(&self.0.changed);
        let ended = |_| LoadError::Abandoned { name };
        loading.await.map_err(ended)?
    }

    /// Sets how long a model stays without requests until it is unloaded, and gives its name. A key
    /// changes nothing for a model that other keys use.
    pub(crate) fn keep(
        &self,
        name: Option<String>,
        keep_alive: KeepAlive,
        key: Option<KeyHash>,
    ) -> Result<String, LoadError> {
        let mut state = self.lock();
        let (place, name) = state.find(name)?;
        let slot = &mut state.slots[place];
        if slot.is_kept_by(key) {
            slot.keep(keep_alive);
        }
        Ok(name)
    }

    /// A request of a key uses a model.
    pub(crate) fn note_key(&self, id: u64, key: KeyHash) {
        let mut state = self.lock();
        if let Some(loaded) = state.slot(id).and_then(Slot::loaded_mut) {
            loaded.keys.insert(key);
        }
    }

    /// A use of a model has ended.
    pub(crate) fn release(&self, id: u64) {
        let mut state = self.lock();
        let now = state.clock.now();
        let Some(loaded) = state.slot(id).and_then(Slot::loaded_mut) else { return };
        loaded.uses -= 1;
        loaded.used = now;
        if loaded.uses == 0 {
            loaded.idle.notify_one();
            self.end_removed(&mut state);
            self.0.changed.notify_one();
        }
    }

    /// Adds names to the first model.
    pub(crate) fn add_aliases(&self, aliases: Vec<String>) {
        if let Some(first) = self.lock().slots.first_mut() {
            first.spec.aliases.extend(aliases);
        }
    }

    /// Whether the models of the start are loaded.
    pub(crate) fn has_started(&self) -> bool {
        !self.lock().is_starting
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A request that waits for a model. A load that nobody waits for any more ends.
struct Waiting<'a>(&'a Notify);

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.notify_one();
    }
}

impl State {
    /// The models that can be named.
    fn named(&self) -> impl Iterator<Item = &Slot> {
        self.slots.iter().filter(|slot| !slot.is_removed)
    }

    fn slot(&mut self, id: u64) -> Option<&mut Slot> {
        self.slots.iter_mut().find(|slot| slot.id == id)
    }

    /// The place of a model, and the name that was given or its own.
    fn find(&self, name: Option<String>) -> Result<(usize, String), LoadError> {
        let places = || self.slots.iter().enumerate().filter(|(_, slot)| !slot.is_removed);
        let place = |name: &str| {
            let mut places = places();
            places.find(|(_, slot)| slot.spec.names().any(|one| one == name)).map(|found| found.0)
        };
        let Some(name) = name else {
            let first = places().next().map(|(place, slot)| (place, slot.spec.name.clone()));
            return first.ok_or_else(|| self.unknown(String::new()));
        };
        if let Some(place) = place(&name) {
            return Ok((place, name));
        }
        // The tag of lists in Ollama's API. Names of their own come first.
        let bare = name.strip_suffix(LATEST);
        match bare.and_then(|bare| Some((place(bare)?, bare.to_owned()))) {
            Some(found) => Ok(found),
            None => Err(self.unknown(name)),
        }
    }

    fn unknown(&self, name: String) -> LoadError {
        let known = self.named().flat_map(|slot| slot.spec.names()).cloned().collect();
        LoadError::Unknown { name, known }
    }
}

impl From<Engine> for ModelRegistry {
    /// The model of an engine, which is never unloaded.
    fn from(engine: Engine) -> Self {
        let opener = |_: &LoadProgress| Err(OpenError::from("its engine has ended"));
        let spec = ModelSpec::new(engine.model_name(), opener).pinned(true);
        let mut slot = Slot::new(0, spec);
        slot.bytes = engine.weight_bytes() as u64;
        slot.context_length = Some(engine.context_length());
        slot.phase =
            Phase::Loaded(Loaded::new(engine, KeepAlive::Unlimited, Clock::system().now()));
        let registry = Self::default();
        let mut state = registry.lock();
        (state.next, state.slots) = (1, vec![slot]);
        drop(state);
        registry
    }
}

impl fmt::Debug for ModelRegistry {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = self.lock();
        formatter.debug_list().entries(state.slots.iter().map(|slot| &slot.spec)).finish()
    }
}

impl From<LoadError> for ApiError {
    fn from(error: LoadError) -> Self {
        match &error {
            LoadError::Unknown { name, known } => Self::unknown_model(name, known),
            LoadError::NoRoom { .. } => Self::no_room(error.to_string()),
            LoadError::Failed { .. } | LoadError::Abandoned { .. } => {
                Self::not_loaded(error.to_string())
            }
        }
    }
}
