//! Memory limits of an engine, and its memory monitor.

use std::time::Duration;

use setun_engine::{DeviceKind, Error as EngineError, MemoryMonitor, Replica, ReplicaDraft};
use setun_model::Model as Forward;

use super::EngineBuilder;
use crate::error::Error;

impl EngineBuilder {
    /// The share of the machine's main memory, above 0 and up to 1, that the weights and the cache
    /// of each processor may take; the cache has fewer [`contexts`](Self::contexts) for it. Only
    /// on Linux, which tells how much there is, and not on GPUs. Default: no limit.
    pub fn memory_fraction(mut self, fraction: f64) -> Self {
        self.memory_fraction = Some(fraction);
        self
    }

    /// Has about this many bytes of a model's files read before they are wanted, while others become
    /// weights: natively on a thread. 0 reads nothing before; it is for files that are slow to
    /// read. What is in memory already is not read at all. Default: 0.
    pub fn prefetch(mut self, bytes: usize) -> Self {
        self.prefetch = Some(bytes);
        self
    }

    /// Has each device's owner ask between steps, and while it waits with memory in its cache, how
    /// short memory is, so often at most; what can be is given back, as by
    /// [`Engine::release_memory`](crate::Engine::release_memory). [`SystemMemory`](crate::SystemMemory) asks the
    /// system. Default: none.
    pub fn memory_monitor(mut self, watch: impl MemoryMonitor + 'static, every: Duration) -> Self {
        self.options.set_memory_monitor(watch, every);
        self
    }
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
    if !(fraction > 0.0 && fraction <= 1.0) {
        return bad(fraction.to_string(), "a number above 0, up to 1".into());
    }
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
    let least = context.div_ceil(model.block_positions());
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

/// Bytes of the machine's main memory, where the system tells.
fn main_memory() -> Option<usize> {
    if !cfg!(target_os = "linux") {
        return None;
    }
    let lines = std::fs::read_to_string("/proc/meminfo").ok()?;
    let total = lines.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    let kibibytes: usize = total.trim().strip_suffix("kB")?.trim().parse().ok()?;
    kibibytes.checked_mul(1024)
}
