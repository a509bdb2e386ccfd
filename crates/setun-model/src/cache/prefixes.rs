//! Which full blocks hold which tokens.
//!
//! A block is known by its tokens and by the block before it, so that a path from the first block
//! on spells a prefix. The first block is known by a salt as well, so that prefixes of two salts
//! share nothing. Tokens are compared, not hashes of them: a prefix that is found is the one that
//! was requested. What is computed for a position depends on the tokens up to it alone, so a block
//! that is found holds the bits that would be computed again.

use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
};

use setun_ops::BlockId;

/// What separates prefixes that begin with the same tokens. Those without one are one group, too.
pub type CacheSalt = Arc<str>;

/// The blocks that are known by their tokens.
#[derive(Clone, Debug, Default)]
pub(super) struct Prefixes {
    paths: HashMap<(Parent, Box<[u32]>), BlockId>,
    nodes: HashMap<BlockId, Node>,
    clock: u64,
    /// Blocks that no sequence has.
    pub(super) idle: usize,
    /// Most of them that are kept.
    pub(super) max_idle: usize,
}

/// What a block comes after.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Parent {
    Root(Option<CacheSalt>),
    Block(BlockId),
}

#[derive(Clone, Debug)]
struct Node {
    parent: Parent,
    tokens: Box<[u32]>,
    children: usize,
    used: u64,
}

impl Parent {
    fn block(&self) -> Option<BlockId> {
        if let Self::Block(block) = self { Some(*block) } else { None }
    }

    fn map(self, moved: impl Fn(BlockId) -> BlockId) -> Self {
        match self {
            Self::Block(block) => Self::Block(moved(block)),
            root @ Self::Root(_) => root,
        }
    }
}

impl Prefixes {
    pub(super) fn contains(&self, block: BlockId) -> bool {
        self.nodes.contains_key(&block)
    }

    /// The blocks of the longest known prefix of `tokens` with a salt, each of this many positions.
    pub(super) fn find(
        &self,
        salt: Option<&CacheSalt>,
        tokens: &[u32],
        block_positions: usize,
    ) -> Vec<BlockId> {
        let (mut blocks, mut parent) = (vec![], Parent::Root(salt.cloned()));
        for tokens in tokens.chunks_exact(block_positions) {
            let Some(&block) = self.paths.get(&(parent, tokens.into())) else { break };
            blocks.push(block);
            parent = Parent::Block(block);
        }
        blocks
    }

    /// Makes a block known, unless one with these tokens is at this place: then it is returned.
    /// `parent` is known, too.
    pub(super) fn insert(
        &mut self,
        parent: Parent,
        tokens: &[u32],
        block: BlockId,
    ) -> Option<BlockId> {
        let key = (parent, Box::from(tokens));
        if let Some(&known) = self.paths.get(&key) {
            return Some(known);
        }
        let (parent, tokens) = key.clone();
        self.paths.insert(key, block);
        if let Some(before) = self.node_mut(&parent) {
            before.children += 1;
        }
        self.nodes.insert(block, Node { parent, tokens, children: 0, used: self.clock });
        None
    }

    /// These blocks are used now.
    pub(super) fn touch(&mut self, blocks: &[BlockId]) {
        self.clock += 1;
        for block in blocks {
            if let Some(node) = self.nodes.get_mut(block) {
                node.used = self.clock;
            }
        }
    }

    /// Blocks have moved, each from a place to another.
    pub(super) fn rename(&mut self, moves: &BTreeMap<BlockId, BlockId>) {
        if moves.is_empty() {
            return;
        }
        let moved = |block: BlockId| moves.get(&block).copied().unwrap_or(block);
        let paths = self
            .paths
            .drain()
            .map(|((parent, tokens), block)| ((parent.map(moved), tokens), moved(block)));
        self.paths = paths.collect();
        let nodes = self
            .nodes
            .drain()
            .map(|(block, node)| (moved(block), Node { parent: node.parent.map(moved), ..node }));
        self.nodes = nodes.collect();
    }

    /// Forgets the idle block that was not used for the longest time, of those that none comes
    /// after. `references` count the owners of each block, this index among them. Who has a block
    /// has those before it, so an idle block is followed by idle ones alone.
    pub(super) fn remove_oldest(&mut self, references: &[u32]) -> Option<BlockId> {
        let is_idle = |block: &BlockId| references[block.0 as usize] == 1;
        let last = self.nodes.iter().filter(|(block, node)| node.children == 0 && is_idle(block));
        let (&block, _) = last.min_by_key(|&(block, node)| (node.used, *block))?;
        let Node { parent, tokens, .. } = self.nodes.remove(&block)?;
        if let Some(before) = self.node_mut(&parent) {
            before.children -= 1;
        }
        self.paths.remove(&(parent, tokens));
        self.idle -= 1;
        Some(block)
    }

    /// The block that another comes after.
    fn node_mut(&mut self, parent: &Parent) -> Option<&mut Node> {
        self.nodes.get_mut(&parent.block()?)
    }
}
