//! Limits of an engine, and the sizes of its blocks and steps.

/// Tokens of a block of the cache, `BLOCK_POSITIONS` of `setun-model`.
pub const BLOCK_TOKENS: u32 = 32;

/// Rows of the largest step, `MAX_ROWS` of `setun-model`.
pub const MAX_ROWS: u32 = 512;

/// Limits of an engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Tokens that the cache has room for: `contexts` times `context_length`.
    pub cache: u32,
    /// Of these, tokens that are kept of prompts that no request has: `prefix_positions`.
    pub prefix: u32,
    /// Requests that run at once: `max_concurrent`.
    pub max_concurrent: u32,
}

impl Default for Limits {
    fn default() -> Self {
        Self { cache: 32_768, prefix: 32_768, max_concurrent: 64 }
    }
}
