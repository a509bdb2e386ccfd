//! The shape of a cache: paged keys and values, and recurrent states.

use crate::recurrent_spec::RecurrentSpec;

/// Element type of a cache. Keys and values are rounded to it when they are appended, and are
/// read only from there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CacheElement {
    /// As computed.
    F32,
    /// Rounded to the nearest, ties to even; subnormals kept; beyond ±65504 saturated.
    F16,
    /// One scale for each token and KV head: `a = max(absmax, 1e-5)`, code
    /// `clamp(round_half_even(x · (127 / a)), ±127)`, scale `a / 127`.
    Int8,
}

/// Shape of a paged cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CacheSpec {
    /// Layers.
    pub layers: usize,
    /// Key and value heads of a layer.
    pub kv_heads: usize,
    /// Width of a head.
    pub head_dim: usize,
    /// Positions in a block: a divisor or a multiple of [`SPAN`](crate::attention::SPAN).
    pub block_positions: usize,
    /// Element type.
    pub element: CacheElement,
    /// The recurrent states, where layers have them.
    pub recurrent: Option<RecurrentSpec>,
}

impl CacheSpec {
    /// The smallest cache with blocks of this many positions, for plans without attention.
    #[must_use]
    pub fn smallest(block_positions: usize) -> Self {
        let element = CacheElement::F32;
        Self { layers: 1, kv_heads: 1, head_dim: 2, block_positions, element, recurrent: None }
    }

    /// Bytes of the recurrent state of a sequence over all layers.
    #[must_use]
    pub fn state_bytes(&self) -> usize {
        self.recurrent.map_or(0, |recurrent| recurrent.state_bytes())
    }

    /// Bytes of one block over all layers, keys, values and their scales.
    #[must_use]
    pub fn block_bytes(&self) -> usize {
        let vectors = 2 * self.layers * self.kv_heads * self.block_positions;
        let vector = match self.element {
            CacheElement::F32 => 4 * self.head_dim,
            CacheElement::F16 => 2 * self.head_dim,
            CacheElement::Int8 => self.head_dim + 4,
        };
        vectors * vector
    }
}
