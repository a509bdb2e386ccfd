//! The batches of a server, and whose they are.

use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use setun::Clock;
use sha2::{Digest, Sha256};
use tokio::{sync::Semaphore, time::sleep};

use super::store::FileStore;
use crate::{
    api_keys::{ApiKeys, KeyHash},
    unix_time::unix_seconds,
};

/// The owner of what a server without keys keeps.
const OPEN: &str = "open";

/// The key of a request, for routes that have no guard of one.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Requester(pub(crate) Option<KeyHash>);

/// Files and batches, and what those that run share.
#[derive(Debug)]
pub(crate) struct Batches {
    pub(crate) store: FileStore,
    keys: ApiKeys,
    clock: Clock,
    /// A moment of the clock, and the second of Unix time that it was.
    begun: (Instant, u64),
    /// Places of each owner for requests that are answered at once.
    places: Mutex<HashMap<String, Arc<Semaphore>>>,
    /// One batch reads its whole input at a time.
    pub(crate) validating: Semaphore,
    has_started: AtomicBool,
}

/// Whose a file or a batch is.
#[derive(Clone, Debug)]
pub(crate) struct Owner {
    /// A hash of the key's hash: what is stored tells nobody a key.
    pub(crate) id: String,
    pub(crate) is_one_of_several: bool,
}

/// A batch whose key the server does not have any more.
pub(crate) struct KeyIsGone;

impl Batches {
    pub(crate) fn new(store: FileStore, keys: ApiKeys, clock: Clock) -> Self {
        let begun = (clock.now(), unix_seconds());
        let (places, validating) = (Mutex::default(), Semaphore::new(1));
        let has_started = AtomicBool::new(false);
        Self { store, keys, clock, begun, places, validating, has_started }
    }

    /// Whether this is the first call.
    pub(crate) fn starts(&self) -> bool {
        !self.has_started.swap(true, Ordering::Relaxed)
    }

    /// Seconds of Unix time; those of a held clock pass as it is moved.
    pub(crate) fn now(&self) -> u64 {
        let (moment, second) = self.begun;
        match self.clock.arrival(moment) {
            Some(_) => second + self.clock.since(moment).as_secs(),
            None => unix_seconds(),
        }
    }

    /// Waits until a second of Unix time.
    pub(crate) async fn until(&self, second: u64) {
        loop {
            let left = Duration::from_secs(second.saturating_sub(self.now()));
            if left.is_zero() {
                return;
            }
            match self.clock.now().checked_add(left).and_then(|end| self.clock.arrival(end)) {
                Some(arrival) => arrival.await,
                // The time of day may be changed in the meantime.
                None => sleep(left.min(Duration::from_mins(1))).await,
            }
        }
    }

    /// Who sends a request with this key.
    pub(crate) fn owner(&self, key: Option<KeyHash>) -> Owner {
        let is_one_of_several = key.is_some() && self.keys.are_several();
        Owner { id: owner_id(key.as_ref()), is_one_of_several }
    }

    /// The key of an owner.
    pub(crate) fn key_of(&self, owner: &str) -> Result<(Option<KeyHash>, bool), KeyIsGone> {
        if self.keys.is_empty() {
            return if owner == OPEN { Ok((None, false)) } else { Err(KeyIsGone) };
        }
        let key = self.keys.find(|key| owner_id(Some(key)) == owner).ok_or(KeyIsGone)?;
        Ok((Some(key), self.keys.are_several()))
    }

    /// The places of an owner's requests.
    pub(crate) fn places(&self, owner: &str, most: usize) -> Arc<Semaphore> {
        let mut places = self.places.lock().unwrap_or_else(PoisonError::into_inner);
        let own = places.entry(owner.to_owned()).or_insert_with(|| Arc::new(Semaphore::new(most)));
        Arc::clone(own)
    }
}

fn owner_id(key: Option<&KeyHash>) -> String {
    let Some(key) = key else { return OPEN.to_owned() };
    let hash = Sha256::new().chain_update(b"setun files of ").chain_update(key).finalize();
    hash.iter().take(16).fold(String::new(), |digits, byte| format!("{digits}{byte:02x}"))
}
