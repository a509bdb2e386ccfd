//! Test access to devices of this process, one test at a time.

use std::sync::{
    Mutex, PoisonError,
    atomic::{AtomicU64, Ordering},
};

use setun_ops::OpsError;

use super::Wgpu;

static MAX_BYTES: AtomicU64 = AtomicU64::new(u64::MAX);
static LATEST_BYTES: AtomicU64 = AtomicU64::new(0);
static LATEST: Mutex<Option<wgpu::Device>> = Mutex::new(None);

impl Wgpu {
    /// Refuses each device more memory than this from now on.
    pub fn limit_memory(bytes: u64) {
        MAX_BYTES.store(bytes, Ordering::Relaxed);
    }

    /// Bytes requested of the device that allocated last, freed ones included.
    #[must_use]
    pub fn latest_bytes() -> u64 {
        LATEST_BYTES.load(Ordering::Relaxed)
    }

    /// The driver's handle of the device that was opened last, to be taken away from whoever
    /// has it.
    #[must_use]
    pub fn latest() -> Option<wgpu::Device> {
        LATEST.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

pub(super) fn opened(device: &wgpu::Device) {
    LATEST.lock().unwrap_or_else(PoisonError::into_inner).replace(device.clone());
}

/// Counts memory, up to the limit.
pub(super) fn take(taken: &mut u64, what: &'static str, size: u64) -> Result<(), OpsError> {
    *taken += size;
    LATEST_BYTES.store(*taken, Ordering::Relaxed);
    if *taken <= MAX_BYTES.load(Ordering::Relaxed) {
        return Ok(());
    }
    Err(OpsError::OutOfMemory { what, bytes: usize::try_from(size).unwrap_or(usize::MAX) })
}
