//! Counters of all answers.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError, atomic::AtomicU64},
};

/// Counts of answers, whatever model gave them.
#[derive(Debug, Default)]
pub(crate) struct ServerMetrics {
    /// Whether metrics have vLLM's own names.
    pub(crate) has_vllm_names: bool,
    /// Log lines that could not be written.
    pub(crate) dropped_log_lines: Arc<AtomicU64>,
    responses: Mutex<BTreeMap<u16, u64>>,
    batch_requests: Mutex<BTreeMap<u16, u64>>,
}

impl ServerMetrics {
    pub(crate) fn new(has_vllm_names: bool, dropped_log_lines: Arc<AtomicU64>) -> Self {
        Self { has_vllm_names, dropped_log_lines, ..Self::default() }
    }

    pub(crate) fn add_response(&self, status: u16) {
        *lock(&self.responses).entry(status).or_default() += 1;
    }

    /// Counts the answer of a request of a batch.
    pub(crate) fn add_batch_request(&self, status: u16) {
        *lock(&self.batch_requests).entry(status).or_default() += 1;
    }

    /// Answers by their status.
    pub(crate) fn responses(&self) -> BTreeMap<u16, u64> {
        lock(&self.responses).clone()
    }

    /// Answers of requests of batches by their status.
    pub(crate) fn batch_requests(&self) -> BTreeMap<u16, u64> {
        lock(&self.batch_requests).clone()
    }
}

fn lock(counts: &Mutex<BTreeMap<u16, u64>>) -> MutexGuard<'_, BTreeMap<u16, u64>> {
    counts.lock().unwrap_or_else(PoisonError::into_inner)
}
