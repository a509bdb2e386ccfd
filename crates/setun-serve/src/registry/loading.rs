//! Loads of models, the room for them, and their end.

use std::{
    pin::pin,
    sync::{Arc, Weak},
    time::{Duration, Instant},
};

use futures::future::select;
use setun::{Clock, Engine};
use tokio::{
    runtime::Handle,
    sync::Notify,
    task::spawn_blocking,
    time::{sleep, timeout},
};
use tracing::{info, warn};

use super::{
    KeepAlive, LoadError, LoadProgress, ModelRegistry, OpenError, OpenModel, Shared, State,
    slot::{Loaded, Phase, Slot},
};

/// How often it is looked whether the last handle of an engine is gone.
const HANDLES: Duration = Duration::from_millis(5);

/// What a load that needs room does next.
enum Room {
    Reserved,
    Unload(u64, Engine),
    Wait,
}

impl ModelRegistry {
    /// Begins to load a model that is not loaded, in a task of its own.
    pub(super) fn begin_load(&self, slot: &mut Slot) {
        if !matches!(slot.phase, Phase::Unloaded) {
            return;
        }
        let progress = LoadProgress::default();
        slot.phase = Phase::Loading(progress.clone());
        let (registry, id, opener) = (self.clone(), slot.id, Arc::clone(&slot.spec.opener));
        let name = slot.spec.name.clone();
        tokio::spawn(async move {
            let opened = registry.open(id, &name, opener, progress).await;
            registry.end_load(id, &name, opened);
        });
    }

    async fn open(
        &self,
        id: u64,
        name: &str,
        opener: Arc<dyn OpenModel>,
        progress: LoadProgress,
    ) -> Result<Engine, LoadError> {
        let sizes = Arc::clone(&opener);
        let bytes = opening(name, move || sizes.memory_bytes()).await?;
        {
            let _turn = self.0.room.lock().await;
            self.make_room(id, bytes).await?;
        }
        opening(name, move || opener.open(&progress)).await
    }

    /// Reserves bytes of the budget, and unloads others for it.
    async fn make_room(&self, id: u64, bytes: u64) -> Result<(), LoadError> {
        loop {
            let room = self.lock().room(id, bytes);
            match room {
                Ok(Room::Reserved) => break,
                Ok(Room::Unload(victim, engine)) => self.unload(victim, engine).await,
                Ok(Room::Wait) => self.0.changed.notified().await,
                Err(error) => {
                    self.admit_again();
                    return Err(error);
                }
            }
        }
        self.admit_again();
        Ok(())
    }

    /// Models that are still loaded take requests again.
    fn admit_again(&self) {
        let mut all = vec![];
        for slot in &mut self.lock().slots {
            slot.loaded_mut().into_iter().for_each(|loaded| loaded.is_wanted = false);
            all.push(slot.answer(self, None));
        }
        all.into_iter().for_each(super::slot::Answers::send);
    }

    fn end_load(&self, id: u64, name: &str, opened: Result<Engine, LoadError>) {
        let mut state = self.lock();
        let (default, now) = (state.keep_alive, state.clock.now());
        let Some(slot) = state.slot(id) else { return }; // the registry was closed
        let error = match opened {
            Ok(engine) => {
                info!(target: "setun_serve", model = name, "loaded");
                slot.loads += 1;
                (slot.has_failed, slot.context_length) = (false, Some(engine.context_length()));
                slot.bytes = slot.bytes.max(engine.weight_bytes() as u64);
                let loaded = Loaded::new(engine, slot.spec.keep_alive.unwrap_or(default), now);
                let idle = (Arc::downgrade(&self.0), id, Arc::clone(&loaded.idle));
                tokio::spawn(unload_when_idle(idle.0, idle.1, idle.2));
                slot.phase = Phase::Loaded(loaded);
                None
            }
            Err(error) => {
                (slot.phase, slot.bytes) = (Phase::Unloaded, 0);
                if !matches!(error, LoadError::Abandoned { .. }) {
                    warn!(target: "setun_serve", model = name, %error, "not loaded");
                    slot.failures += 1;
                    slot.has_failed = true;
                }
                Some(error)
            }
        };
        let answers = slot.answer(self, error.as_ref());
        self.end_removed(&mut state);
        drop(state);
        answers.send();
        self.0.changed.notify_one();
    }

    /// Unloads the models that are named no more and have no request.
    pub(super) fn end_removed(&self, state: &mut State) {
        for slot in state.slots.iter_mut().filter(|slot| slot.is_removed) {
            let is_idle = slot.loaded().is_some_and(|loaded| loaded.uses == 0);
            let Some(engine) = is_idle.then(|| slot.unload()).flatten() else { continue };
            let (registry, id) = (self.clone(), slot.id);
            match Handle::try_current() {
                Ok(handle) => drop(handle.spawn(async move { registry.unload(id, engine).await })),
                Err(_) => slot.phase = Phase::Unloaded, // the runtime has ended, and drops all
            }
        }
        state.slots.retain(|slot| !slot.is_removed || !matches!(slot.phase, Phase::Unloaded));
    }

    /// Waits until the memory of a model is free. Requests that wait for it have it loaded again.
    async fn unload(&self, id: u64, engine: Engine) {
        let metrics = engine.metrics().await.unwrap_or_default();
        let weak = engine.downgrade();
        let _ = spawn_blocking(move || engine.close()).await;
        while weak.is_alive() {
            sleep(HANDLES).await; // a task that has not seen that its client has left
        }
        let mut state = self.lock();
        if let Some(slot) = state.slot(id) {
            info!(target: "setun_serve", model = slot.spec.name, "unloaded");
            slot.add_past(&metrics);
            slot.unloads += 1;
            (slot.phase, slot.bytes) = (Phase::Unloaded, 0);
            if slot.is_awaited() {
                self.begin_load(slot);
            }
        }
        self.end_removed(&mut state);
        drop(state);
        self.0.changed.notify_one();
    }
}

/// What comes next for a model that may be idle.
enum Idle {
    /// It is not loaded any more.
    Ended,
    Unload(Engine),
    /// It has requests, or this time left at a moment of the clock.
    Wait(Option<(Duration, Instant, Clock)>),
}

impl State {
    fn idle_step(&mut self, id: u64, idle: &Arc<Notify>) -> Idle {
        let (clock, now) = (self.clock.clone(), self.clock.now());
        let Some(slot) = self.slot(id) else { return Idle::Ended };
        let is_idle = slot.is_idle();
        let is_same = |loaded: &&Loaded| Arc::ptr_eq(&loaded.idle, idle);
        let Some(loaded) = slot.loaded().filter(is_same) else { return Idle::Ended };
        let KeepAlive::For(time) = loaded.keep_alive else { return Idle::Wait(None) };
        let left = time.saturating_sub(now.saturating_duration_since(loaded.used));
        if !is_idle {
            return Idle::Wait(None);
        }
        if !left.is_zero() {
            return Idle::Wait(Some((left, now, clock)));
        }
        slot.unload().map_or(Idle::Ended, Idle::Unload)
    }

    /// Reserves bytes for a model, or says what has to come before.
    fn room(&mut self, id: u64, bytes: u64) -> Result<Room, LoadError> {
        let budget = self.budget.unwrap_or(u64::MAX);
        let Some(slot) = self.slot(id) else { return Ok(Room::Reserved) };
        let name = slot.spec.name.clone();
        if !slot.is_awaited() {
            return Err(LoadError::Abandoned { name });
        }
        let used: u64 = self.slots.iter().map(|slot| slot.bytes).sum();
        if used.saturating_add(bytes) <= budget {
            self.slot(id).into_iter().for_each(|slot| slot.bytes = bytes);
            return Ok(Room::Reserved);
        }
        let pinned = self.slots.iter().filter(|slot| slot.spec.is_pinned && !slot.is_removed);
        let free = budget.saturating_sub(pinned.map(|slot| slot.bytes).sum());
        if bytes > free {
            return Err(LoadError::NoRoom { name, needed: bytes, free, budget });
        }
        Ok(self.free_some(used.saturating_add(bytes) - budget))
    }

    /// Unloads the idle model that was not used for the longest time. Without one, busy models are
    /// wanted, so that they take no new requests, until this many bytes will be free.
    fn free_some(&mut self, mut missing: u64) -> Room {
        let used = |slot: &&mut Slot| slot.loaded().map(|loaded| loaded.used);
        let idle = self.slots.iter_mut().filter(|slot| slot.is_idle()).min_by_key(used);
        if let Some(victim) = idle
            && let Some(engine) = victim.unload()
        {
            return Room::Unload(victim.id, engine);
        }
        let is_ending = |slot: &&Slot| matches!(slot.phase, Phase::Unloading) || slot.is_removed;
        let ending: u64 = self.slots.iter().filter(is_ending).map(|slot| slot.bytes).sum();
        missing = missing.saturating_sub(ending);
        let busy = self.slots.iter_mut().filter(|slot| !slot.spec.is_pinned && !slot.is_removed);
        let mut busy: Vec<_> = busy.filter(|slot| slot.loaded().is_some()).collect();
        busy.sort_by_key(used);
        for slot in busy {
            if missing > 0 {
                missing = missing.saturating_sub(slot.bytes);
                slot.loaded_mut().into_iter().for_each(|loaded| loaded.is_wanted = true);
            }
        }
        Room::Wait
    }
}

/// Runs what opens a model on a thread that may block.
async fn opening<T: Send + 'static>(
    name: &str,
    open: impl FnOnce() -> Result<T, OpenError> + Send + 'static,
) -> Result<T, LoadError> {
    let opened = spawn_blocking(open).await;
    let opened = opened.unwrap_or_else(|_| Err(OpenError::from("the load has panicked")));
    opened.map_err(|error| LoadError::Failed {
        name: name.to_owned(),
        reason: error.to_string().into(),
    })
}

/// Unloads a model once it had no request for its time. Ends with the model.
async fn unload_when_idle(registry: Weak<Shared>, id: u64, idle: Arc<Notify>) {
    loop {
        let Some(registry) = registry.upgrade().map(ModelRegistry) else { return };
        let next = registry.lock().idle_step(id, &idle);
        match next {
            Idle::Ended => return,
            Idle::Unload(engine) => return registry.unload(id, engine).await,
            Idle::Wait(left) => {
                drop(registry);
                match left {
                    None => idle.notified().await,
                    Some((left, now, clock)) => passed(left, now, &clock, &idle).await,
                }
            }
        }
    }
}

/// Waits for this time after a moment of the clock, or until `idle` is told.
async fn passed(left: Duration, now: Instant, clock: &Clock, idle: &Notify) {
    match now.checked_add(left).and_then(|end| clock.arrival(end)) {
        Some(arrival) => drop(select(arrival, pin!(idle.notified())).await),
        None => drop(timeout(left, idle.notified()).await),
    }
}
