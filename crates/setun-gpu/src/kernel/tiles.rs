//! Sizes of the tiles that a device's kernels compute.

use super::TILE_ROWS;

/// What a workgroup of a device's kernels takes together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tiles {
    /// Outputs of a product.
    pub outputs: u32,
    /// Outputs and rows of a product of many rows, where it has a kernel for that.
    pub many: Option<[u32; 2]>,
    /// Tokens of a head.
    pub tokens: u32,
    /// Heads of attention that share keys and values.
    pub heads: usize,
    /// Whether attention to many positions is shared out in chunks.
    pub has_chunks: bool,
}

impl Default for Tiles {
    /// Those of the WGSL kernels.
    fn default() -> Self {
        Self { outputs: 32, many: Some([32, TILE_ROWS]), tokens: 32, heads: 4, has_chunks: true }
    }
}
