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
