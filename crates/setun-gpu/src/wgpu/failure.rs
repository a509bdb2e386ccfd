//! Failures that a driver reports, kept for the next call: they come at any time, in a browser
//! long after the call that caused them.

use std::sync::{Arc, Mutex, PoisonError};

use setun_ops::OpsError;

/// The first failure of a device: those that follow come of it.
#[derive(Clone, Debug, Default)]
pub(super) struct Failure(Arc<Mutex<State>>);

#[derive(Debug, Default)]
struct State {
    first: Option<First>,
    wanted_bytes: u64,
}

#[derive(Debug)]
enum First {
    OutOfMemory,
    Lost(String),
}

impl Failure {
    /// Counts memory that is requested.
    pub(super) fn record_wanted(&self, bytes: u64) {
        self.with(|state| state.wanted_bytes += bytes);
    }

    pub(super) fn record(&self, error: &wgpu::Error) {
        let first = match error {
            wgpu::Error::OutOfMemory { .. } => First::OutOfMemory,
            refused => First::Lost(refused.to_string()),
        };
        self.record_first(first);
    }

    pub(super) fn record_lost(&self, reason: String) {
        self.record_first(First::Lost(reason));
    }

    fn record_first(&self, first: First) {
        self.with(|state| {
            state.first.get_or_insert(first);
        });
    }

    /// Memory that was refused is an error of its request alone; where it
    /// is reported late, in a browser, to every user.
    pub(super) fn check_memory(&self, what: &'static str, bytes: u64) -> Result<(), OpsError> {
        let is_told_at_once = cfg!(not(target_family = "wasm"));
        let refused = |first: &mut First| matches!(first, First::OutOfMemory);
        if is_told_at_once && self.with(|state| state.first.take_if(refused).is_some()) {
            let bytes = usize::try_from(bytes).unwrap_or(usize::MAX);
            return Err(OpsError::OutOfMemory { what, bytes });
        }
        self.check()
    }

    pub(super) fn check(&self) -> Result<(), OpsError> {
        let refused = |first: &mut First| matches!(first, First::OutOfMemory);
        let is_told_at_once = cfg!(not(target_family = "wasm"));
        if is_told_at_once && self.with(|state| state.first.take_if(refused).is_some()) {
            return Err(OpsError::OutOfMemory { what: "what the GPU is to hold", bytes: 0 });
        }
        self.with(|state| match &state.first {
            Some(First::OutOfMemory) => {
                let bytes = usize::try_from(state.wanted_bytes).unwrap_or(usize::MAX);
                Err(OpsError::OutOfMemory { what: "what the GPU is to hold", bytes })
            }
            Some(First::Lost(reason)) => Err(OpsError::DeviceLost { reason: reason.clone() }),
            None => Ok(()),
        })
    }

    fn with<T>(&self, act: impl FnOnce(&mut State) -> T) -> T {
        act(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// The state of a device, for all that use it.
#[derive(Debug)]
pub struct DeviceHealth {
    #[cfg_attr(not(target_family = "wasm"), expect(dead_code, reason = "nothing is waited for"))]
    queue: wgpu::Queue,
    failure: Failure,
}

impl DeviceHealth {
    pub(super) fn new(queue: wgpu::Queue, failure: Failure) -> Self {
        Self { queue, failure }
    }

    /// Waits until what is queued is done, where that may still fail, and says whether it was.
    ///
    /// # Errors
    ///
    /// If the driver has refused anything so far, or has lost the device.
    #[cfg_attr(
        not(target_family = "wasm"),
        expect(clippy::unused_async, reason = "natively a refusal is reported at once")
    )]
    pub async fn settled(&self) -> Result<(), OpsError> {
        #[cfg(target_family = "wasm")]
        {
            let (resolve, done) = super::callback_future::callback_future();
            self.queue.on_submitted_work_done(move || resolve(()));
            done.await;
        }
        self.failure.check()
    }
}

/// `wgpu` panics on errors of a browser's third kind, which say that a driver gave up on
/// something valid. A scope without an end keeps them; what came of them is invalid, and its use
/// an error of another kind.
#[cfg(target_family = "wasm")]
pub(super) fn keep_internal_errors(device: &wgpu::Device) {
    std::mem::forget(device.push_error_scope(wgpu::ErrorFilter::Internal));
}
