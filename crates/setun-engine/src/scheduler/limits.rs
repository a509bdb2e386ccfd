//! Limits of a scheduler: blocks, prefixes, sequences.

use std::time::Duration;

use setun_model::{Model, PagedCache};

/// What a scheduler is held to.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    /// Blocks of the cache; at least those of one context.
    pub(crate) blocks: usize,
    /// Blocks of one context.
    pub(crate) min_blocks: usize,
    /// Blocks that no sequence has, kept for prompts that begin as others did.
    pub(crate) prefix_blocks: usize,
    /// Sequences that run at once; at least 1.
    pub(crate) streams: usize,
    /// Time that an idle scheduler waits for more requests after the first.
    pub(crate) wait: Duration,
}

impl Limits {
    /// An empty cache of this size.
    pub(super) fn cache(&self, model: &dyn Model) -> PagedCache {
        let mut cache = PagedCache::new(model.block_positions(), self.blocks);
        cache.keep_prefixes(self.prefix_blocks);
        cache
    }
}
