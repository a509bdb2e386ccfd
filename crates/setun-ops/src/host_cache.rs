//! The paged KV cache in host memory, for every backend that runs there.

use crate::{
    attention::HeadCache,
    cache::{BlockId, CacheSpec},
    cache_values::CacheValues,
    error::OpsError,
    recurrent::HostStates,
};

/// A cache in host memory; see [`cache`](crate::cache) for the layout.
#[derive(Clone, Debug)]
pub struct HostCache {
    spec: CacheSpec,
    blocks: usize,
    layers: Vec<CacheLayer>,
    states: HostStates,
}

/// Keys and values of one layer.
#[derive(Clone, Debug)]
pub struct CacheLayer {
    /// Rotated keys.
    pub keys: CacheValues,
    /// Values.
    pub values: CacheValues,
}

impl HostCache {
    /// A cache of `blocks` zeroed blocks.
    ///
    /// # Errors
    ///
    /// If the block size does not suit, or the memory is not to be had.
    pub fn new(spec: CacheSpec, blocks: usize) -> Result<Self, OpsError> {
        spec.check()?;
        let layer = || CacheLayer {
            keys: CacheValues::empty(spec.element),
            values: CacheValues::empty(spec.element),
        };
        let layers = (0..spec.layers).map(|_| layer()).collect();
        let states = HostStates::new(spec.recurrent);
        let mut cache = Self { spec, blocks: 0, layers, states };
        cache.grow(blocks)?;
        Ok(cache)
    }

    /// Adds zeroed blocks until there are `blocks`.
    ///
    /// # Errors
    ///
    /// If the memory is not to be had; the cache is then as it was.
    pub fn grow(&mut self, blocks: usize) -> Result<(), OpsError> {
        if blocks <= self.blocks {
            return Ok(());
        }
        let bytes = blocks.saturating_mul(self.spec.block_bytes());
        let out_of_memory = |_| OpsError::OutOfMemory { what: "the KV cache", bytes };
        let vectors = blocks * self.spec.kv_heads * self.spec.block_positions;
        for layer in &mut self.layers {
            layer.keys.reserve(vectors, self.spec.head_dim).map_err(out_of_memory)?;
            layer.values.reserve(vectors, self.spec.head_dim).map_err(out_of_memory)?;
        }
        for layer in &mut self.layers {
            layer.keys.resize(vectors, self.spec.head_dim);
            layer.values.resize(vectors, self.spec.head_dim);
        }
        self.blocks = blocks;
        Ok(())
    }

    /// Gives back the memory of all blocks but the first `blocks`.
    pub fn shrink(&mut self, blocks: usize) {
        if blocks >= self.blocks {
            return;
        }
        let vectors = blocks * self.spec.kv_heads * self.spec.block_positions;
        for layer in &mut self.layers {
            layer.keys.shrink(vectors, self.spec.head_dim);
            layer.values.shrink(vectors, self.spec.head_dim);
        }
        self.blocks = blocks;
    }

    /// Shape.
    #[must_use]
    pub fn spec(&self) -> &CacheSpec {
        &self.spec
    }

    /// Number of blocks.
    #[must_use]
    pub fn blocks(&self) -> usize {
        self.blocks
    }

    /// Numbers of blocks and of recurrent states.
    #[must_use]
    pub fn sizes(&self) -> (usize, usize) {
        (self.blocks, self.states.states())
    }

    /// The recurrent states.
    #[must_use]
    pub fn states(&self) -> &HostStates {
        &self.states
    }

    /// The recurrent states, to be written.
    pub fn states_mut(&mut self) -> &mut HostStates {
        &mut self.states
    }

    /// The layers.
    #[must_use]
    pub fn layers(&self) -> &[CacheLayer] {
        &self.layers
    }

    /// The layers, to append to.
    pub fn layers_mut(&mut self) -> &mut [CacheLayer] {
        &mut self.layers
    }

    /// Index of the vector `[head_dim]` of a KV head at a position of a sequence.
    ///
    /// # Panics
    ///
    /// If the block table does not cover the position.
    #[must_use]
    pub fn vector_index(&self, table: &[BlockId], kv_head: usize, position: usize) -> usize {
        let block = table[position / self.spec.block_positions].0 as usize;
        (block * self.spec.kv_heads + kv_head) * self.spec.block_positions
            + position % self.spec.block_positions
    }

    /// Copies whole blocks `(from, to)`, in order.
    ///
    /// # Errors
    ///
    /// If a block is not of this cache.
    pub fn copy_blocks(&mut self, pairs: &[(BlockId, BlockId)]) -> Result<(), OpsError> {
        for &(from, to) in pairs {
            self.check_block(from)?;
            self.check_block(to)?;
            let vectors = self.spec.kv_heads * self.spec.block_positions;
            for layer in &mut self.layers {
                for values in [&mut layer.keys, &mut layer.values] {
                    values.copy_block(from, to, vectors, self.spec.head_dim);
                }
            }
        }
        Ok(())
    }

    /// See [`Backend::read_blocks`](crate::Backend::read_blocks).
    ///
    /// # Errors
    ///
    /// If a block is not of this cache or `out` does not fit.
    pub fn read_blocks(&self, blocks: &[BlockId], out: &mut [u8]) -> Result<(), OpsError> {
        self.check_blocks(blocks, out.len())?;
        let vectors = self.spec.kv_heads * self.spec.block_positions;
        for (&block, mut out) in blocks.iter().zip(out.chunks_exact_mut(self.spec.block_bytes())) {
            for layer in &self.layers {
                let parts = [&layer.keys, &layer.values]
                    .map(|values| values.block(block, vectors, self.spec.head_dim));
                let [[keys, key_scales], [values, value_scales]] = parts;
                for bytes in [keys, values, key_scales, value_scales] {
                    let (head, rest) = out.split_at_mut(bytes.len());
                    head.copy_from_slice(bytes);
                    out = rest;
                }
            }
        }
        Ok(())
    }

    /// See [`Backend::write_blocks`](crate::Backend::write_blocks).
    ///
    /// # Errors
    ///
    /// If a block is not of this cache or `data` does not fit.
    pub fn write_blocks(&mut self, blocks: &[BlockId], data: &[u8]) -> Result<(), OpsError> {
        self.check_blocks(blocks, data.len())?;
        let vectors = self.spec.kv_heads * self.spec.block_positions;
        for (&block, mut data) in blocks.iter().zip(data.chunks_exact(self.spec.block_bytes())) {
            for layer in &mut self.layers {
                let parts = [&mut layer.keys, &mut layer.values]
                    .map(|values| values.block_mut(block, vectors, self.spec.head_dim));
                let [[keys, key_scales], [values, value_scales]] = parts;
                for bytes in [keys, values, key_scales, value_scales] {
                    let (head, rest) = data.split_at(bytes.len());
                    bytes.copy_from_slice(head);
                    data = rest;
                }
            }
        }
        Ok(())
    }

    /// One KV head of a sequence, to attend to.
    ///
    /// # Panics
    ///
    /// If the layer is not of this cache.
    #[must_use]
    pub fn head<'a>(&'a self, layer: usize, table: &'a [BlockId], kv_head: usize) -> HostHead<'a> {
        HostHead { cache: self, layer: &self.layers[layer], table, kv_head }
    }

    fn check_blocks(&self, blocks: &[BlockId], bytes: usize) -> Result<(), OpsError> {
        blocks.iter().try_for_each(|&block| self.check_block(block))?;
        let expected = blocks.len() * self.spec.block_bytes();
        if bytes == expected {
            Ok(())
        } else {
            Err(OpsError::Length { what: "bytes of cache blocks", expected, found: bytes })
        }
    }

    fn check_block(&self, block: BlockId) -> Result<(), OpsError> {
        if (block.0 as usize) < self.blocks {
            return Ok(());
        }
        let (expected, found) = (self.blocks.saturating_sub(1), block.0 as usize);
        Err(OpsError::Inputs { what: "cache block", expected, found })
    }
}

/// One KV head of one sequence in a [`HostCache`].
#[derive(Clone, Copy, Debug)]
pub struct HostHead<'a> {
    cache: &'a HostCache,
    layer: &'a CacheLayer,
    table: &'a [BlockId],
    kv_head: usize,
}

impl HeadCache for HostHead<'_> {
    fn key(&self, position: usize, out: &mut [f32]) -> f32 {
        let index = self.cache.vector_index(self.table, self.kv_head, position);
        self.layer.keys.load(index, out)
    }

    fn value(&self, position: usize, out: &mut [f32]) -> f32 {
        let index = self.cache.vector_index(self.table, self.kv_head, position);
        self.layer.values.load(index, out)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cache::CacheElement;

    fn cache(element: CacheElement) -> HostCache {
        let (layers, kv_heads, head_dim, block_positions, recurrent) = (2, 3, 8, 4, None);
        let spec = CacheSpec { layers, kv_heads, head_dim, block_positions, element, recurrent };
        HostCache::new(spec, 3).unwrap()
    }

    #[test]
    fn blocks_travel_unchanged() {
        for element in [CacheElement::F32, CacheElement::F16, CacheElement::Int8] {
            let mut source = cache(element);
            let table = [BlockId(2), BlockId(0)];
            for position in 0..8u8 {
                let x = [0u8, 1, 2, 3, 4, 5, 6, 7].map(|i| f32::from(i) - f32::from(position));
                let index = source.vector_index(&table, 1, usize::from(position));
                source.layers_mut()[1].keys.store(index, &x);
                source.layers_mut()[1].values.store(index, &x[..]);
            }
            let mut bytes = vec![0; 2 * source.spec().block_bytes()];
            source.read_blocks(&table, &mut bytes).unwrap();
            let mut target = cache(element);
            target.write_blocks(&[BlockId(1), BlockId(2)], &bytes).unwrap();
            target.copy_blocks(&[(BlockId(1), BlockId(0))]).unwrap();
            target.grow(5).unwrap();
            let moved = [BlockId(0), BlockId(2)];
            let (mut a, mut b) = ([0.0; 8], [0.0; 8]);
            for position in 0..8 {
                let scale = source.head(1, &table, 1).value(position, &mut a);
                assert_eq!(scale, target.head(1, &moved, 1).value(position, &mut b));
                assert_eq!(a, b);
            }
            assert!(target.read_blocks(&[BlockId(5)], &mut bytes).is_err());
        }
    }

    #[test]
    fn what_is_beyond_is_given_back() {
        for element in [CacheElement::F32, CacheElement::F16, CacheElement::Int8] {
            let mut cache = cache(element);
            let bytes: Vec<u8> =
                (0..3 * cache.spec().block_bytes()).map(|at| at.to_le_bytes()[0]).collect();
            cache.write_blocks(&[BlockId(0), BlockId(1), BlockId(2)], &bytes).unwrap();
            cache.shrink(4);
            assert_eq!(cache.blocks(), 3);
            cache.shrink(2);
            let kept: usize =
                cache.layers().iter().map(|l| l.keys.bytes() + l.values.bytes()).sum();
            assert_eq!((cache.blocks(), kept), (2, 2 * cache.spec().block_bytes()));
            let mut found = vec![0; kept];
            cache.read_blocks(&[BlockId(0), BlockId(1)], &mut found).unwrap();
            assert_eq!(found, bytes[..kept]);
            assert!(cache.copy_blocks(&[(BlockId(2), BlockId(0))]).is_err());
            // What comes again is empty.
            cache.grow(3).unwrap();
            let mut found = vec![1; cache.spec().block_bytes()];
            cache.read_blocks(&[BlockId(2)], &mut found).unwrap();
            assert!(found.iter().all(|&byte| byte == 0));
        }
    }
}
