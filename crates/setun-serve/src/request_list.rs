//! Generations under way, which can be listed and cancelled.

use std::{
    sync::{Mutex, MutexGuard, PoisonError},
    time::Instant,
};

use serde::Serialize;
use setun::CancelHandle;

use crate::request_id::new_id;

/// Requests whose generations are under way, in the order in which they came.
#[derive(Debug, Default)]
pub(crate) struct RequestList(Mutex<Vec<Entry>>);

/// Where a request came from.
#[derive(Clone, Debug, Default)]
pub(crate) struct RequestOrigin {
    /// The path of the API.
    pub(crate) api: String,
    /// The request's own id, as it is in the log and in the answer.
    pub(crate) request_id: String,
}

#[derive(Debug)]
struct Entry {
    id: String,
    model: String,
    origin: RequestOrigin,
    begun: Instant,
    texts: Vec<CancelHandle>,
}

/// A request as it is listed: nothing of what was asked or answered.
#[derive(Debug, Serialize)]
pub(crate) struct ListedRequest {
    id: String,
    request_id: String,
    model: String,
    api: String,
    state: &'static str,
    texts: usize,
    tokens: usize,
    age_seconds: f64,
}

impl RequestList {
    /// Lists a request until it is removed by the id that it gets.
    pub(crate) fn add(
        &self,
        model: &str,
        origin: RequestOrigin,
        texts: Vec<CancelHandle>,
    ) -> String {
        let id = new_id("gen_");
        let (model, begun) = (model.to_owned(), Instant::now());
        self.lock().push(Entry { id: id.clone(), model, origin, begun, texts });
        id
    }

    pub(crate) fn remove(&self, id: &str) {
        self.lock().retain(|entry| entry.id != id);
    }

    pub(crate) fn all(&self) -> Vec<ListedRequest> {
        self.lock().iter().map(Entry::listed).collect()
    }

    /// Ends the texts of a request, whose answer then has what there is of them. False where there
    /// is no such request.
    pub(crate) fn cancel(&self, id: &str) -> bool {
        let list = self.lock();
        let found = list.iter().find(|entry| entry.id == id);
        found.inspect(|entry| entry.texts.iter().for_each(CancelHandle::cancel)).is_some()
    }

    /// Ends all texts.
    pub(crate) fn cancel_all(&self) {
        self.lock().iter().flat_map(|entry| &entry.texts).for_each(CancelHandle::cancel);
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Entry>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Entry {
    fn listed(&self) -> ListedRequest {
        let is_running = self.texts.iter().any(CancelHandle::is_running);
        ListedRequest {
            id: self.id.clone(),
            request_id: self.origin.request_id.clone(),
            model: self.model.clone(),
            api: self.origin.api.clone(),
            state: if is_running { "running" } else { "waiting" },
            texts: self.texts.len(),
            tokens: self.texts.iter().map(CancelHandle::tokens).sum(),
            age_seconds: self.begun.elapsed().as_secs_f64(),
        }
    }
}
