//! Handles that keep no engine alive.

use std::sync::{Arc, Weak};

use setun_model::CacheSalt;

use super::{Engine, Handle, Shared};

/// A handle to an engine that ends with its last other handle all the same.
#[derive(Clone, Debug)]
pub struct WeakEngine {
    schedulers: Weak<[Handle]>,
    shared: Weak<Shared>,
    salt: Option<CacheSalt>,
    tenant: Option<u64>,
}

impl WeakEngine {
    /// Whether somebody has it.
    #[must_use]
    pub fn is_alive(&self) -> bool {
        self.shared.strong_count() > 0
    }

    /// The engine, unless it has ended.
    #[must_use]
    pub fn upgrade(&self) -> Option<Engine> {
        let (schedulers, shared) = (self.schedulers.upgrade()?, self.shared.upgrade()?);
        let engine = Engine { schedulers, shared, salt: self.salt.clone(), tenant: self.tenant };
        engine.schedulers.iter().all(|scheduler| !scheduler.commands.is_closed()).then_some(engine)
    }
}

impl Engine {
    /// A handle that does not keep the engine alive.
    #[must_use]
    pub fn downgrade(&self) -> WeakEngine {
        let (schedulers, shared) = (Arc::downgrade(&self.schedulers), Arc::downgrade(&self.shared));
        WeakEngine { schedulers, shared, salt: self.salt.clone(), tenant: self.tenant }
    }

    /// Whether two handles are of one engine.
    #[must_use]
    pub fn is_same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.shared, &other.shared)
    }
}
