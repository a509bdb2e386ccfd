//! The blocks of a replica's cache: which are held, which are kept, and which is dropped next.
//!
//! This follows `PagedCache` of `setun-model`, without the tokens and without copies on write: a
//! block is known by the hash of all tokens up to its end.

use std::collections::BTreeSet;

use crate::hash::HashKeyed;

/// Blocks of one replica.
#[derive(Clone, Debug)]
pub(crate) struct BlockCache {
    max_blocks: u32,
    max_idle: u32,
    known: HashKeyed<Node>,
    idle: u32,                         // known, and held by no request
    unknown: u32,                      // held by requests, and not known yet
    last_blocks: BTreeSet<(u64, u64)>, // idle ones that none comes after: last use, hash
    clock: u64,
}

#[derive(Clone, Debug)]
struct Node {
    parent: Option<u64>,
    children: u32,
    holders: u32,
    used: u64,
}

impl BlockCache {
    /// An empty cache of `max_blocks`, which keeps up to `max_idle` of them that no request holds.
    pub(crate) fn new(max_blocks: u32, max_idle: u32) -> Self {
        let (known, last_blocks) = (HashKeyed::default(), BTreeSet::new());
        Self { max_blocks, max_idle, known, idle: 0, unknown: 0, last_blocks, clock: 0 }
    }

    /// How many blocks of a chain are known from its first on, and how many of these are idle.
    pub(crate) fn found(&self, chain: &[u64]) -> (u32, u32) {
        let (mut count, mut idle) = (0, 0);
        for node in chain.iter().map_while(|block| self.known.get(block)) {
            count += 1;
            idle += u32::from(node.holders == 0);
        }
        (count, idle)
    }

    /// Blocks that can be taken, idle ones among them.
    pub(crate) fn free(&self) -> u32 {
        self.max_blocks.saturating_sub(self.held())
    }

    /// Blocks that requests hold.
    pub(crate) fn held(&self) -> u32 {
        self.count() - self.idle
    }

    /// Blocks in use, idle ones among them.
    pub(crate) fn count(&self) -> u32 {
        u32::try_from(self.known.len()).unwrap_or(u32::MAX) + self.unknown
    }

    /// Another request holds these known blocks, which are used now.
    pub(crate) fn hold(&mut self, chain: &[u64]) {
        for &block in chain {
            self.hold_one(block);
        }
        self.touch(chain);
    }

    /// A request takes this many blocks, at most as many as are free. Idle ones make room.
    pub(crate) fn take(&mut self, blocks: u32) {
        self.unknown += blocks;
        while self.count() > self.max_blocks && self.drop_oldest() {}
    }

    /// Makes the blocks of a chain known from the one of this number on, which their request has
    /// taken before. One that is known already takes the place of its equal. Whether they are kept:
    /// a cache without idle blocks knows none.
    pub(crate) fn record(&mut self, chain: &[u64], from: u32) -> bool {
        let from = from as usize;
        if self.max_idle == 0 || from >= chain.len() {
            return false;
        }
        for index in from..chain.len() {
            self.unknown -= 1;
            if self.known.contains_key(&chain[index]) {
                self.hold_one(chain[index]);
                continue;
            }
            let parent = index.checked_sub(1).map(|before| chain[before]);
            if let Some(before) = parent.and_then(|parent| self.known.get_mut(&parent)) {
                before.children += 1;
            }
            self.known.insert(chain[index], Node { parent, children: 0, holders: 1, used: 0 });
        }
        self.touch(chain);
        true
    }

    /// A request lets go of its known blocks and of this many others.
    pub(crate) fn release(&mut self, chain: &[u64], unknown: u32) {
        self.unknown -= unknown;
        for &block in chain {
            let Some(node) = self.known.get_mut(&block) else { continue };
            node.holders -= 1;
            if node.holders == 0 {
                self.idle += 1;
                if node.children == 0 {
                    self.last_blocks.insert((node.used, block));
                }
            }
        }
        while self.idle > self.max_idle && self.drop_oldest() {}
    }

    fn hold_one(&mut self, block: u64) {
        let Some(node) = self.known.get_mut(&block) else { return };
        node.holders += 1;
        if node.holders == 1 {
            self.idle -= 1;
            self.last_blocks.remove(&(node.used, block));
        }
    }

    /// All of these are held.
    fn touch(&mut self, chain: &[u64]) {
        self.clock += 1;
        for block in chain {
            if let Some(node) = self.known.get_mut(block) {
                node.used = self.clock;
            }
        }
    }

    /// Drops the idle block that was not used for the longest time, of those that none comes after.
    /// False if there is none.
    fn drop_oldest(&mut self) -> bool {
        let Some((_, block)) = self.last_blocks.pop_first() else { return false };
        let parent = self.known.remove(&block).and_then(|node| node.parent);
        self.idle -= 1;
        if let Some(parent) = parent
            && let Some(node) = self.known.get_mut(&parent)
        {
            node.children -= 1;
            if node.children == 0 && node.holders == 0 {
                self.last_blocks.insert((node.used, parent));
            }
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A request that computes a chain alone.
    fn compute(cache: &mut BlockCache, chain: &[u64]) -> u32 {
        let (found, _) = cache.found(chain);
        cache.hold(&chain[..found as usize]);
        cache.take(u32::try_from(chain.len()).expect("few") - found);
        cache.record(chain, found);
        cache.release(chain, 0);
        found
    }

    #[test]
    fn lru_evicts_a_chain_from_its_end() {
        let mut cache = BlockCache::new(4, 4);
        assert_eq!(compute(&mut cache, &[1, 2]), 0);
        assert_eq!(compute(&mut cache, &[3, 4]), 0);
        assert_eq!(compute(&mut cache, &[1, 2]), 2, "used again");
        assert_eq!(compute(&mut cache, &[5]), 0);
        assert_eq!(cache.found(&[3, 4]).0, 1, "the end of the older chain made room");
        assert_eq!(compute(&mut cache, &[6]), 0);
        assert_eq!(cache.found(&[3, 4]).0, 0);
        assert_eq!(cache.found(&[1, 2]), (2, 2));
    }

    #[test]
    fn a_shared_beginning_outlives_its_branches() {
        let mut cache = BlockCache::new(3, 3);
        compute(&mut cache, &[1, 2]);
        compute(&mut cache, &[1, 3]);
        compute(&mut cache, &[4]);
        assert_eq!([2, 3].map(|last| cache.found(&[1, last]).0), [1, 2]);
        assert_eq!(cache.count(), 3);
    }

    #[test]
    fn held_blocks_are_never_dropped() {
        let mut cache = BlockCache::new(2, 2);
        cache.take(2);
        cache.record(&[1, 2], 0);
        assert_eq!((cache.free(), cache.held()), (0, 2));
        cache.release(&[1, 2], 0);
        assert_eq!((cache.free(), cache.held()), (2, 0));
        cache.hold(&[1]);
        cache.take(1);
        assert_eq!((cache.found(&[1, 2]), cache.count()), ((1, 0), 2));
    }

    #[test]
    fn equal_blocks_become_one() {
        let mut cache = BlockCache::new(4, 4);
        cache.take(1);
        cache.take(1);
        assert!(cache.record(&[1], 0));
        assert!(cache.record(&[1], 0));
        assert_eq!(cache.count(), 1);
        cache.release(&[1], 0);
        assert_eq!(cache.held(), 1);
    }

    #[test]
    fn only_so_many_idle_blocks_are_kept() {
        let mut cache = BlockCache::new(8, 1);
        compute(&mut cache, &[1, 2, 3]);
        assert_eq!((cache.count(), cache.found(&[1, 2, 3])), (1, (1, 1)));
        let mut none = BlockCache::new(8, 0);
        none.take(1);
        assert!(!none.record(&[1], 0));
        none.release(&[], 1);
        assert_eq!(none.count(), 0);
    }
}
