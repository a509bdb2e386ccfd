//! Telemetry of an engine: spans and events through `tracing`, counters, gauges and histograms
//! through `metrics`. The names are a part of the interface: `docs/observability.md`. Without the
//! feature `observe` the same functions do nothing, and neither crate is linked.

#[cfg(feature = "observe")]
mod meters;
#[cfg(not(feature = "observe"))]
mod off;
#[cfg(feature = "observe")]
mod trace;

#[cfg(feature = "observe")]
pub(crate) use meters::Meters;
#[cfg(not(feature = "observe"))]
pub(crate) use off::{Meters, Trace, in_step, step};
#[cfg(feature = "observe")]
pub(crate) use trace::{Trace, in_step, step};

/// Why a request is not in the batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WaitReason {
    /// As many requests run as may.
    BatchFull,
    /// The KV cache has no room for its tokens.
    CacheFull,
    /// Another prompt that begins like its own is being computed.
    SharedPrefix,
    /// A request before it waits.
    QueueOrder,
    /// Its tenant has its share of the batch.
    TenantShare,
    /// The idle engine waits for more requests.
    BatchWait,
    /// It was preempted, and its stream is not read.
    StreamFull,
}

#[cfg(feature = "observe")]
impl WaitReason {
    fn name(self) -> &'static str {
        match self {
            Self::BatchFull => "batch_full",
            Self::CacheFull => "cache_full",
            Self::SharedPrefix => "shared_prefix",
            Self::QueueOrder => "queue_order",
            Self::TenantShare => "tenant_share",
            Self::BatchWait => "batch_wait",
            Self::StreamFull => "stream_full",
        }
    }
}
