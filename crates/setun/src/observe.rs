//! Tells others what an engine does: spans and events through `tracing`, counters, gauges and
//! histograms through `metrics`. The names are a part of the interface: `docs/observability.md`.

mod meters;
mod trace;

pub(crate) use meters::Meters;
pub(crate) use trace::{Trace, in_step, step};
