//! Memory limits of an engine, and its memory monitor.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use setun_engine::{
    DeviceKind, Error as EngineError, MemoryMonitor, Replica, ReplicaDraft, SharedMonitor,
};
use setun_model::Model as Forward;

use super::EngineBuilder;
use crate::error::Error;

impl EngineBuilder {
    /// Has each device's owner ask between steps, and while it waits with memory in its cache, how
    /// short memory is, so often at most; what can be is given back, as by
    /// [`Engine::release_memory`](crate::Engine::release_memory). [`SystemMemory`](crate::SystemMemory) asks the
    /// system. Default: none.
    #[must_use]
    pub fn memory_monitor(
        mut self,
        monitor: impl MemoryMonitor + 'static,
        every: Duration,
    ) -> Self {
        self.monitor = Some((shared_monitor(monitor), every));
        self
    }
}

/// A monitor that several schedulers ask.
pub(super) fn shared_monitor(monitor: impl MemoryMonitor + 'static) -> SharedMonitor {
    Arc::new(Mutex::new(Box::new(monitor)))
}

/// Most blocks of a cache within a share of the memory, which must hold one context. Beside them
/// stand a draft and its cache of as many positions.
pub(super) fn max_blocks(
    fraction: Option<f64>,
    replica: &Replica,
    context: usize,
) -> Result<usize, Error> {
    let Some(fraction) = fraction else { return Ok(usize::MAX) };
    let bad = |found: String, expected: String| {
        Err(EngineError::BadOption { option: "memory_fraction", found, expected }.into())
    };
    let Some(memory) = main_memory().filter(|_| replica.backend == DeviceKind::Cpu) else {
        let found = format!("{fraction} for {}", replica.backend);
        return bad(found, "none where the size of the memory is not known".into());
    };
    #[expect(
        clippy::cast_precision_loss,
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a share of memory need not be exact"
    )]
    let allowed = (memory as f64 * fraction) as usize;
    let model = &replica.model;
    let (draft_bytes, draft_position_bytes) = draft_bytes(replica.draft.as_ref());
    let weights = model.memory().weights() + draft_bytes;
    let block_bytes = model.block_bytes().max(1) + model.block_positions() * draft_position_bytes;
    let least = context.div_ceil(model.block_positions()) + model.state_blocks();
    let blocks = allowed.saturating_sub(weights) / block_bytes;
    if blocks < least {
        let found = format!("{fraction}, {allowed} bytes");
        let needed = weights + least * block_bytes;
        return bad(found, format!("{needed} bytes or more, for the weights and one context"));
    }
    Ok(blocks)
}

/// Bytes of a draft's weights, and of its cache for a position.
fn draft_bytes(draft: Option<&ReplicaDraft>) -> (usize, usize) {
    let of_cache =
        |model: &dyn Forward| model.block_bytes().div_ceil(model.block_positions().max(1));
    draft.map_or((0, 0), |draft| (draft.model.memory().weights(), of_cache(&*draft.model)))
}

/// Bytes of the machine's main memory, if the system reports it.
fn main_memory() -> Option<usize> {
    if !cfg!(target_os = "linux") {
        return None;
    }
    let lines = std::fs::read_to_string("/proc/meminfo").ok()?;
    let total = lines.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    let kibibytes: usize = total.trim().strip_suffix("kB")?.trim().parse().ok()?;
    kibibytes.checked_mul(1024)
}
