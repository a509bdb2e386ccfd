//! The shape of the cache of some layers.

use setun_checkpoint::{ModelConfig, config::Mixer};
use setun_ops::{
    CacheElement, CacheSpec, RecurrentSpec,
    delta_net::{DeltaNetShape, HeadOrder},
    ternary::PLANE_COLUMNS,
};

/// The shape of a delta net as it is computed: the columns of its output matrix are brought into one order, so that
/// files of either order add up alike, where scales can follow.
pub(crate) fn canonical(shape: DeltaNetShape) -> DeltaNetShape {
    if shape.value_dim.is_multiple_of(PLANE_COLUMNS) {
        DeltaNetShape { output_order: HeadOrder::Grouped, ..shape }
    } else {
        shape
    }
}

/// Cache of the layers `layers` of a model: keys and values of those that attend, recurrent states of the others.
/// A state keeps up to `tentative` rows that may be taken back.
#[must_use]
pub fn cache_spec(
    config: &ModelConfig,
    layers: std::ops::Range<usize>,
    (block_positions, element): (usize, CacheElement),
    tentative: usize,
) -> CacheSpec {
    let layers = config.layers.get(layers).unwrap_or_default();
    let mut recurrent: Option<RecurrentSpec> = None;
    for shape in layers.iter().filter_map(|layer| layer.delta_net()).map(canonical) {
        recurrent.get_or_insert(RecurrentSpec { layers: 0, shape, tentative }).layers += 1;
    }
    let attending = layers.iter().filter(|layer| **layer == Mixer::Attention).count();
    CacheSpec {
        layers: attending.max(1), // blocks without bytes would be free of charge
        kv_heads: config.kv_heads,
        head_dim: config.head_dim,
        block_positions,
        element,
        recurrent,
    }
}
