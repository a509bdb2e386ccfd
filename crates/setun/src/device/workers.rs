//! Workers that share a model's weights with the processor.

use std::{
    fmt,
    sync::{Arc, Mutex, PoisonError},
};

use setun_cpu::ShardLink;
use setun_ops::WeightSpec;

use crate::header::ModelHeader;

/// Least bytes of weights between two exchanges that are worth an exchange: a tenth of a millisecond
/// against what reading them takes in a browser (`docs/lab/2026-11-27-workers.md`).
const BYTES_WORTH_AN_EXCHANGE: u64 = 2 << 20;

/// Exchanges in a layer: after queries, keys and values, attention, the gate, and `down`.
const LAYER_EXCHANGES: u64 = 4;

/// A link that one model takes.
type Untaken = Arc<Mutex<Option<Box<dyn ShardLink>>>>;

/// The way to workers, for the first model that the processor takes; a model that is loaded again after
/// they were lost runs without them. Clones are the same.
#[derive(Clone, Default)]
pub struct Workers(Option<Untaken>);

impl Workers {
    /// Those that a link reaches.
    #[cfg_attr(
        target_family = "wasm",
        expect(
            clippy::arc_with_non_send_sync,
            reason = "objects of JavaScript stay on their thread"
        )
    )]
    #[must_use]
    pub fn new(link: Box<dyn ShardLink>) -> Self {
        Self(Some(Arc::new(Mutex::new(Some(link)))))
    }

    /// The link, once.
    pub(super) fn take(&self) -> Option<Box<dyn ShardLink>> {
        self.0.as_ref()?.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

impl ModelHeader {
    /// Whether the weights are large enough for [`Workers`] to make one stream faster.
    #[must_use]
    pub fn gains_by_workers(&self) -> bool {
        let weights = self.layout.specs.iter().zip(&self.kinds);
        let ternary = weights.filter(|(spec, _)| matches!(spec, WeightSpec::Ternary { .. }));
        let bytes: u64 = ternary.map(|(spec, kind)| kind.bytes(*spec)).sum();
        let exchanges = LAYER_EXCHANGES * self.config.layers as u64 + 1;
        bytes / exchanges >= BYTES_WORTH_AN_EXCHANGE
    }
}

impl fmt::Debug for Workers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Workers")
    }
}

impl PartialEq for Workers {
    fn eq(&self, other: &Self) -> bool {
        match (&self.0, &other.0) {
            (Some(link), Some(other)) => Arc::ptr_eq(link, other),
            (link, other) => link.is_none() && other.is_none(),
        }
    }
}

impl Eq for Workers {}
