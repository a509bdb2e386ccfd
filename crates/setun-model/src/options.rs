//! Options that do not belong to the checkpoint.

use setun_ops::CacheElement;

/// Positions of a cache block, by default.
pub const BLOCK_POSITIONS: usize = 32;

/// Rows of the largest step.
pub const MAX_ROWS: usize = 512;

/// Choices that do not belong to the checkpoint.
#[derive(Clone, Copy, Debug)]
pub struct TransformerOptions {
    /// Element type of the cache.
    pub cache_element: CacheElement,
    /// Positions of a cache block.
    pub block_positions: usize,
    /// Whether rows that want no more than their best tokens get just these, from
    /// [`Op::TopLogits`](setun_ops::Op::TopLogits). Otherwise they get all logits.
    pub ranked: bool,
    /// Most rows of a sequence that a recurrent state lets a step take back: drafts to be verified.
    pub max_tentative: usize,
}

/// Most rows that a recurrent state lets a step take back, by default.
pub const MAX_TENTATIVE: usize = 8;

impl Default for TransformerOptions {
    fn default() -> Self {
        Self {
            cache_element: CacheElement::F16,
            block_positions: BLOCK_POSITIONS,
            ranked: false,
            max_tentative: MAX_TENTATIVE,
        }
    }
}
