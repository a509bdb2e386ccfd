//! The paged KV cache: its shape, its element types and what rounding they do.
//!
//! A cache is made of blocks of a fixed number of positions; a sequence owns a list of blocks,
//! its block table. In a backend's memory, layer by layer, keys and values are each
//! `[blocks, kv_heads, block_positions, head_dim]`, so that one head's positions are neighbours.
//! Which blocks belong to whom is not known here: `setun-model` counts references.

use half::f16;

pub use crate::cache_spec::{CacheElement, CacheSpec};
use crate::error::OpsError;

/// A block of the cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct BlockId(pub u32);

impl CacheSpec {
    /// Checks that the block size suits the spans of attention.
    ///
    /// # Errors
    ///
    /// If it neither divides nor is a multiple of [`SPAN`](crate::attention::SPAN), or is 0.
    pub fn check(&self) -> Result<(), OpsError> {
        let span = crate::attention::SPAN;
        let found = self.block_positions;
        if found == 0 || (!span.is_multiple_of(found) && !found.is_multiple_of(span)) {
            return Err(OpsError::Length {
                what: "positions in a cache block",
                expected: span,
                found,
            });
        }
        self.recurrent.map_or(Ok(()), |recurrent| recurrent.check())
    }
}

/// Rounds to `f16` as the cache does. A NaN stays one.
#[must_use]
pub fn round_f16(x: f32) -> f16 {
    let rounded = f16::from_f32(x);
    if rounded.is_infinite() { f16::MAX.copysign(rounded) } else { rounded }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn f16_saturates_and_keeps_subnormals() {
        assert_eq!(round_f16(65519.0), f16::MAX);
        assert_eq!(round_f16(1e9), f16::MAX);
        assert_eq!(round_f16(f32::NEG_INFINITY), f16::MIN);
        assert_eq!(round_f16(5.960_464_5e-8).to_bits(), 1);
        assert!(round_f16(f32::NAN).is_nan());
    }
}
