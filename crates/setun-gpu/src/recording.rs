//! Recorded lists, which hold on to the memory that they were recorded over.

use std::{
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
};

/// A list, and the numbers of the cache and of the steps' memory that it was recorded over.
pub(crate) struct Recording<L> {
    pub(crate) cache: u64,
    pub(crate) arena: u64,
    pub(crate) list: L,
}

/// The list of a step, if it has one; the backend may drop it.
pub(crate) struct RecordingSlot<L>(Arc<Mutex<Option<Recording<L>>>>);

impl<L> RecordingSlot<L> {
    pub(crate) fn get(&self) -> MutexGuard<'_, Option<Recording<L>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The lists of all steps.
pub(crate) struct Lists<L>(Vec<Weak<Mutex<Option<Recording<L>>>>>);

impl<L> fmt::Debug for Lists<L> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Lists").field(&self.0.len()).finish()
    }
}

impl<L> Lists<L> {
    pub(crate) fn new() -> Self {
        Self(vec![])
    }

    /// A place for one more.
    pub(crate) fn place(&mut self) -> RecordingSlot<L> {
        self.0.retain(|list| list.strong_count() > 0);
        let place = Arc::new(Mutex::new(None));
        self.0.push(Arc::downgrade(&place));
        RecordingSlot(place)
    }

    /// Drops lists, so that their memory may go.
    pub(crate) fn forget(&self, is_gone: impl Fn(&Recording<L>) -> bool) {
        for place in self.0.iter().filter_map(Weak::upgrade) {
            place.lock().unwrap_or_else(PoisonError::into_inner).take_if(|list| is_gone(list));
        }
    }
}
