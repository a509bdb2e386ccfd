//! Keys or values of one layer of a cache in host memory: storing rounds, loading widens.

use std::collections::TryReserveError;

use half::f16;

use crate::{
    cache::{BlockId, CacheElement, round_f16},
    quantize::quantize_row,
};

/// Elements `[blocks, kv_heads, block_positions, head_dim]`.
#[derive(Clone, Debug)]
pub enum CacheValues {
    /// See [`CacheElement::F32`].
    F32(Vec<f32>),
    /// See [`CacheElement::F16`].
    F16(Vec<f16>),
    /// See [`CacheElement::Int8`].
    Int8 {
        /// Codes.
        codes: Vec<i8>,
        /// `[blocks, kv_heads, block_positions]`
        scales: Vec<f32>,
    },
}

impl CacheValues {
    pub(crate) fn empty(element: CacheElement) -> Self {
        match element {
            CacheElement::F32 => Self::F32(vec![]),
            CacheElement::F16 => Self::F16(vec![]),
            CacheElement::Int8 => Self::Int8 { codes: vec![], scales: vec![] },
        }
    }

    pub(crate) fn reserve(
        &mut self,
        vectors: usize,
        head_dim: usize,
    ) -> Result<(), TryReserveError> {
        fn to<T>(values: &mut Vec<T>, len: usize) -> Result<(), TryReserveError> {
            values.try_reserve_exact(len.saturating_sub(values.len()))
        }
        match self {
            Self::F32(values) => to(values, vectors * head_dim),
            Self::F16(values) => to(values, vectors * head_dim),
            Self::Int8 { codes, scales } => {
                to(codes, vectors * head_dim)?;
                to(scales, vectors)
            }
        }
    }

    pub(crate) fn resize(&mut self, vectors: usize, head_dim: usize) {
        match self {
            Self::F32(values) => values.resize(vectors * head_dim, 0.0),
            Self::F16(values) => values.resize(vectors * head_dim, f16::ZERO),
            Self::Int8 { codes, scales } => {
                codes.resize(vectors * head_dim, 0);
                scales.resize(vectors, 0.0);
            }
        }
    }

    /// Keeps this many vectors, and memory for no others.
    pub(crate) fn shrink(&mut self, vectors: usize, head_dim: usize) {
        fn to<T>(values: &mut Vec<T>, len: usize) {
            values.truncate(len);
            values.shrink_to_fit();
        }
        match self {
            Self::F32(values) => to(values, vectors * head_dim),
            Self::F16(values) => to(values, vectors * head_dim),
            Self::Int8 { codes, scales } => {
                to(codes, vectors * head_dim);
                to(scales, vectors);
            }
        }
    }

    /// Bytes of memory that they have.
    #[cfg(test)]
    pub(crate) fn bytes(&self) -> usize {
        match self {
            Self::F32(values) => 4 * values.capacity(),
            Self::F16(values) => 2 * values.capacity(),
            Self::Int8 { codes, scales } => codes.capacity() + 4 * scales.capacity(),
        }
    }

    /// Rounds `x` `[head_dim]` to the element and stores it as vector `index`.
    ///
    /// # Panics
    ///
    /// If the index is out of range.
    pub fn store(&mut self, index: usize, x: &[f32]) {
        let range = index * x.len()..(index + 1) * x.len();
        match self {
            Self::F32(values) => values[range].copy_from_slice(x),
            Self::F16(values) => {
                for (stored, &x) in values[range].iter_mut().zip(x) {
                    *stored = round_f16(x);
                }
            }
            Self::Int8 { codes, scales } => {
                scales[index] = quantize_row(x, &mut codes[range]).scale;
            }
        }
    }

    /// Widens vector `index` into `out` `[head_dim]`; returns its scale, or 1.
    ///
    /// # Panics
    ///
    /// If the index is out of range.
    pub fn load(&self, index: usize, out: &mut [f32]) -> f32 {
        let range = index * out.len()..(index + 1) * out.len();
        match self {
            Self::F32(values) => out.copy_from_slice(&values[range]),
            Self::F16(values) => {
                for (out, stored) in out.iter_mut().zip(&values[range]) {
                    *out = stored.to_f32();
                }
            }
            Self::Int8 { codes, scales } => {
                for (out, &code) in out.iter_mut().zip(&codes[range]) {
                    *out = f32::from(code);
                }
                return scales[index];
            }
        }
        1.0
    }

    pub(crate) fn block(&self, block: BlockId, vectors: usize, head_dim: usize) -> &[u8] {
        let at = block.0 as usize * vectors * head_dim;
        match self {
            Self::F32(values) => bytemuck::cast_slice(&values[at..][..vectors * head_dim]),
            Self::F16(values) => bytemuck::cast_slice(&values[at..][..vectors * head_dim]),
            Self::Int8 { codes, .. } => bytemuck::cast_slice(&codes[at..][..vectors * head_dim]),
        }
    }

    pub(crate) fn block_mut(
        &mut self,
        block: BlockId,
        vectors: usize,
        head_dim: usize,
    ) -> &mut [u8] {
        let at = block.0 as usize * vectors * head_dim;
        match self {
            Self::F32(values) => bytemuck::cast_slice_mut(&mut values[at..][..vectors * head_dim]),
            Self::F16(values) => bytemuck::cast_slice_mut(&mut values[at..][..vectors * head_dim]),
            Self::Int8 { codes, .. } => {
                bytemuck::cast_slice_mut(&mut codes[at..][..vectors * head_dim])
            }
        }
    }

    pub(crate) fn block_scales(&self, block: BlockId, vectors: usize) -> &[u8] {
        match self {
            Self::Int8 { scales, .. } => {
                bytemuck::cast_slice(&scales[block.0 as usize * vectors..][..vectors])
            }
            _ => &[],
        }
    }

    pub(crate) fn block_scales_mut(&mut self, block: BlockId, vectors: usize) -> &mut [u8] {
        match self {
            Self::Int8 { scales, .. } => {
                bytemuck::cast_slice_mut(&mut scales[block.0 as usize * vectors..][..vectors])
            }
            _ => &mut [],
        }
    }

    pub(crate) fn copy_block(
        &mut self,
        from: BlockId,
        to: BlockId,
        vectors: usize,
        head_dim: usize,
    ) {
        fn copy<T: Copy>(values: &mut [T], from: BlockId, to: BlockId, len: usize) {
            let start = from.0 as usize * len;
            values.copy_within(start..start + len, to.0 as usize * len);
        }
        match self {
            Self::F32(values) => copy(values, from, to, vectors * head_dim),
            Self::F16(values) => copy(values, from, to, vectors * head_dim),
            Self::Int8 { codes, scales } => {
                copy(codes, from, to, vectors * head_dim);
                copy(scales, from, to, vectors);
            }
        }
    }
}
