//! The paged cache in a device's memory, and its way to and from the host.
//!
//! Keys and values of a layer are buffers of vectors `[blocks, kv_heads, block_positions]`, each
//! of whole words; that of an int8 cache ends with its scale.

use setun_ops::{BlockId, CacheElement, CacheSpec, OpsError};

use crate::{executor::Executor, states::GpuStates};

/// A cache. Its buffers are others once it has grown.
#[derive(Debug)]
pub struct GpuCache<B> {
    pub(crate) spec: CacheSpec,
    pub(crate) blocks: usize,
    pub(crate) layers: Vec<[B; 2]>, // keys, values
    pub(crate) states: GpuStates<B>,
    pub(crate) number: u64, // another after each growth, and for each cache
}

impl<B: Clone> GpuCache<B> {
    pub(crate) fn new<E: Executor<Buffer = B>>(
        executor: &mut E,
        spec: CacheSpec,
        blocks: usize,
        number: u64,
    ) -> Result<Self, OpsError> {
        spec.check()?;
        let states = GpuStates::new(spec.recurrent);
        let mut cache = Self { spec, blocks, layers: vec![], states, number };
        let bytes = blocks as u64 * cache.block_bytes();
        for _ in 0..spec.layers {
            let mut buffer = || executor.create_buffer("a KV cache", bytes);
            cache.layers.push([buffer()?, buffer()?]);
        }
        Ok(cache)
    }

    /// Blocks and recurrent states that are there.
    pub(crate) fn sizes(&self) -> (usize, usize) {
        (self.blocks, self.states.count())
    }

    pub(crate) fn grow<E: Executor<Buffer = B>>(
        &mut self,
        executor: &mut E,
        blocks: usize,
        number: u64,
    ) -> Result<(), OpsError> {
        if blocks <= self.blocks {
            return Ok(());
        }
        // One by one, so that there is never twice the cache. Where that fails, some have more room
        // than blocks, and all have what they had.
        self.number = number;
        let (had, bytes) =
            (self.blocks as u64 * self.block_bytes(), blocks as u64 * self.block_bytes());
        for buffer in self.layers.iter_mut().flatten() {
            let grown = executor.create_buffer("a KV cache", bytes)?;
            executor.copy((buffer, 0), (&grown, 0), had)?;
            *buffer = grown;
        }
        self.blocks = blocks;
        Ok(())
    }

    /// See [`Backend::shrink_cache`](setun_ops::Backend::shrink_cache).
    pub(crate) fn shrink<E: Executor<Buffer = B>>(
        &mut self,
        executor: &mut E,
        blocks: usize,
        number: u64,
    ) -> Result<(), OpsError> {
        if blocks >= self.blocks {
            return Ok(());
        }
        (self.blocks, self.number) = (blocks, number);
        let bytes = blocks as u64 * self.block_bytes();
        for buffer in self.layers.iter_mut().flatten() {
            let smaller = match executor.create_buffer("a KV cache", bytes) {
                Ok(smaller) => smaller,
                Err(OpsError::OutOfMemory { .. }) => return Ok(()),
                Err(error) => return Err(error),
            };
            executor.copy((buffer, 0), (&smaller, 0), bytes)?;
            *buffer = smaller;
        }
        Ok(())
    }

    /// See [`Backend::copy_blocks`](setun_ops::Backend::copy_blocks).
    pub(crate) fn copy_blocks<E: Executor<Buffer = B>>(
        &self,
        executor: &mut E,
        pairs: &[(BlockId, BlockId)],
    ) -> Result<(), OpsError> {
        for &(from, to) in pairs {
            let (from, to) = (self.check_block(from)?, self.check_block(to)?);
            if from == to {
                continue;
            }
            for buffer in self.layers.iter().flatten() {
                executor.copy((buffer, from), (buffer, to), self.block_bytes())?;
            }
        }
        Ok(())
    }

    /// See [`Backend::read_blocks`](setun_ops::Backend::read_blocks).
    pub(crate) async fn read_blocks<E: Executor<Buffer = B>>(
        &self,
        executor: &mut E,
        blocks: &[BlockId],
        out: &mut [u8],
    ) -> Result<(), OpsError> {
        self.check_blocks(blocks, out.len())?;
        let mut device = self.block_memory();
        let (elements, scales) = self.host_bytes();
        let layer_bytes = 2 * (elements + scales);
        for (&block, out) in blocks.iter().zip(out.chunks_exact_mut(self.spec.block_bytes())) {
            let offset = self.check_block(block)?;
            for (layer, out) in self.layers.iter().zip(out.chunks_exact_mut(layer_bytes)) {
                let (values, all_scales) = out.split_at_mut(2 * elements);
                for (index, buffer) in layer.iter().enumerate() {
                    executor.read(buffer, offset, &mut device).await?;
                    let values = &mut values[index * elements..][..elements];
                    self.to_host(&device, values, &mut all_scales[index * scales..][..scales]);
                }
            }
        }
        Ok(())
    }

    /// See [`Backend::write_blocks`](setun_ops::Backend::write_blocks).
    pub(crate) fn write_blocks<E: Executor<Buffer = B>>(
        &self,
        executor: &mut E,
        blocks: &[BlockId],
        data: &[u8],
    ) -> Result<(), OpsError> {
        self.check_blocks(blocks, data.len())?;
        let mut device = self.block_memory();
        let (elements, scales) = self.host_bytes();
        let layer_bytes = 2 * (elements + scales);
        for (&block, data) in blocks.iter().zip(data.chunks_exact(self.spec.block_bytes())) {
            let offset = self.check_block(block)?;
            for (layer, data) in self.layers.iter().zip(data.chunks_exact(layer_bytes)) {
                let (values, all_scales) = data.split_at(2 * elements);
                for (index, buffer) in layer.iter().enumerate() {
                    let values = &values[index * elements..][..elements];
                    self.to_device(values, &all_scales[index * scales..][..scales], &mut device);
                    executor.write(buffer, offset, &device)?;
                }
            }
        }
        Ok(())
    }

    /// Host memory for a block's keys, or values, of one layer.
    fn block_memory(&self) -> Vec<u8> {
        vec![0; usize::try_from(self.block_bytes()).unwrap_or(usize::MAX)]
    }

    /// Bytes of a block's keys, or values, in one layer.
    fn block_bytes(&self) -> u64 {
        (self.vectors() * self.vector_bytes()) as u64
    }

    fn check_block(&self, block: BlockId) -> Result<u64, OpsError> {
        if (block.0 as usize) < self.blocks {
            return Ok(u64::from(block.0) * self.block_bytes());
        }
        let (expected, found) = (self.blocks.saturating_sub(1), block.0 as usize);
        Err(OpsError::Inputs { what: "cache block", expected, found })
    }

    fn check_blocks(&self, blocks: &[BlockId], bytes: usize) -> Result<(), OpsError> {
        blocks.iter().try_for_each(|&block| self.check_block(block).map(|_| ()))?;
        let expected = blocks.len() * self.spec.block_bytes();
        if bytes == expected {
            Ok(())
        } else {
            Err(OpsError::Length { what: "bytes of cache blocks", expected, found: bytes })
        }
    }

    fn vectors(&self) -> usize {
        self.spec.kv_heads * self.spec.block_positions
    }

    fn vector_bytes(&self) -> usize {
        match self.spec.element {
            CacheElement::F32 => 4 * self.spec.head_dim,
            CacheElement::F16 => 2 * self.spec.head_dim,
            CacheElement::Int8 => self.spec.head_dim.next_multiple_of(4) + 4,
        }
    }

    /// Splits what a device has of a block's keys, or values, as the host wants it.
    fn to_host(&self, device: &[u8], elements: &mut [u8], scales: &mut [u8]) {
        if self.spec.element != CacheElement::Int8 {
            elements.copy_from_slice(device);
            return;
        }
        let vectors = device.chunks_exact(self.vector_bytes());
        let places = elements.chunks_exact_mut(self.spec.head_dim).zip(scales.chunks_exact_mut(4));
        for (vector, (codes, scale)) in vectors.zip(places) {
            codes.copy_from_slice(&vector[..codes.len()]);
            scale.copy_from_slice(&vector[vector.len() - 4..]);
        }
    }

    /// The other way.
    fn to_device(&self, elements: &[u8], scales: &[u8], device: &mut [u8]) {
        if self.spec.element != CacheElement::Int8 {
            device.copy_from_slice(elements);
            return;
        }
        let places = device.chunks_exact_mut(self.vector_bytes());
        let vectors = elements.chunks_exact(self.spec.head_dim).zip(scales.chunks_exact(4));
        for (place, (codes, scale)) in places.zip(vectors) {
            let end = place.len() - 4;
            place[..codes.len()].copy_from_slice(codes);
            place[codes.len()..end].fill(0);
            place[end..].copy_from_slice(scale);
        }
    }

    /// Bytes of elements, and of scales, of a block's keys or values in one layer on the host.
    fn host_bytes(&self) -> (usize, usize) {
        let vectors = self.vectors();
        match self.spec.element {
            CacheElement::Int8 => (vectors * self.spec.head_dim, 4 * vectors),
            _ => (vectors * self.vector_bytes(), 0),
        }
    }
}
