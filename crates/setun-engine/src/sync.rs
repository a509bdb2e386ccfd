//! Locks and counters that threads of callers share with a scheduler. `fuzz/loom` checks their users
//! over others.

pub(crate) use std::sync::{
    Arc, Mutex, MutexGuard, PoisonError,
    atomic::{AtomicUsize, Ordering},
};

/// Locks what is consistent between any two statements, so that a panic elsewhere spoils nothing.
pub(crate) fn lock<T: ?Sized>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
