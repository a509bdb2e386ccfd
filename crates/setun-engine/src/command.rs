//! Commands from handles and streams to the scheduler of a model.

use std::sync::Arc;

use futures::channel::oneshot;
use setun_clock::Instant;
use setun_model::{CacheSalt, MemoryUse};

use crate::{
    error::Error,
    memory_pressure::Pressure,
    metrics::EngineMetrics,
    profile::EngineProfile,
    saved_session::{Saved, SavedBytes},
    sequence::Request,
};

/// A message to the scheduler.
#[derive(Debug)]
pub(crate) enum Command {
    /// A new generation.
    Generate(Box<Request>),
    /// A consumer took events, cancelled or left.
    Wake,
    /// Time steps from now on, or no longer; the reply is what was timed until now.
    Profile {
        /// From now on.
        profiled: bool,
        /// And keep each step, timed since then.
        timeline: Option<Instant>,
        /// The caller may have gone.
        reply: oneshot::Sender<Option<EngineProfile>>,
    },
    /// Report the memory in use. The caller may have gone.
    Memory(oneshot::Sender<MemoryUse>),
    /// Keep no more than what runs needs.
    ResetPrefixCache,
    /// Do this before the next step.
    Maintenance(MaintenanceTask),
}

/// Something to do before the next step. The caller may have gone.
#[derive(Debug)]
pub(crate) enum MaintenanceTask {
    /// Report the metrics, without sequences that have left.
    Metrics(oneshot::Sender<EngineMetrics>),
    /// Give what the cache has of these tokens with this salt.
    Save { salt: Option<CacheSalt>, tokens: Vec<u32>, reply: oneshot::Sender<Result<Saved, Error>> },
    /// Take what was saved into the cache with this salt, if it is of this model.
    Restore {
        salt: Option<CacheSalt>,
        saved: Arc<SavedBytes>,
        reply: oneshot::Sender<Result<(), Error>>,
    },
    /// Give back memory.
    ReleaseMemory { pressure: Pressure, reply: ReleasedReply },
    /// Hold the cache to this many bytes.
    LimitCache { bytes: usize, reply: ReleasedReply },
}

/// Where a scheduler reports the bytes that it has given back.
pub(crate) type ReleasedReply = oneshot::Sender<Result<usize, Error>>;
