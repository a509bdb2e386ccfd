//! Keys or values of one layer of a cache in host memory: storing rounds, loading widens.

use std::{collections::TryReserveError, ops::Range};

use half::f16;

use crate::{
    aligned::provide,
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

/// Does something to the elements, and to the scales where there are any. `$width` of them belong
/// to a vector.
macro_rules! each_part {
    ($self:expr, $head_dim:expr, |$values:ident, $width:ident| $act:expr) => {{
        let $width = $head_dim;
        match $self {
            Self::F32($values) => $act,
            Self::F16($values) => $act,
            Self::Int8 { codes: $values, scales } => {
                $act;
                let ($values, $width) = (scales, 1);
                $act
            }
        }
    }};
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
        each_part!(self, head_dim, |values, width| {
            let more = (vectors * width).saturating_sub(values.len());
            values.try_reserve_exact(more)?;
            provide(&mut values.spare_capacity_mut()[..more]);
        });
        Ok(())
    }

    pub(crate) fn resize(&mut self, vectors: usize, head_dim: usize) {
        each_part!(self, head_dim, |values, width| values.resize(vectors * width, <_>::default()));
    }

    /// Keeps this many vectors, and memory for no others.
    pub(crate) fn shrink(&mut self, vectors: usize, head_dim: usize) {
        each_part!(self, head_dim, |values, width| {
            values.truncate(vectors * width);
            values.shrink_to_fit();
        });
    }

    /// Bytes of memory that they have.
    #[cfg(test)]
    pub(crate) fn bytes(&self) -> usize {
        let mut bytes = 0;
        each_part!(self, 1, |values, width| {
            bytes += width * values.capacity() * size_of_val(&values[0]);
        });
        bytes
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

    /// The elements of a block of this many vectors, and their scales, which only int8 has.
    pub(crate) fn block(&self, block: BlockId, vectors: usize, head_dim: usize) -> [&[u8]; 2] {
        let elements = block_range(block, vectors * head_dim);
        match self {
            Self::F32(values) => [bytemuck::cast_slice(&values[elements]), &[]],
            Self::F16(values) => [bytemuck::cast_slice(&values[elements]), &[]],
            Self::Int8 { codes, scales } => [
                bytemuck::cast_slice(&codes[elements]),
                bytemuck::cast_slice(&scales[block_range(block, vectors)]),
            ],
        }
    }

    /// [`block`](Self::block), to be written.
    pub(crate) fn block_mut(
        &mut self,
        block: BlockId,
        vectors: usize,
        head_dim: usize,
    ) -> [&mut [u8]; 2] {
        let elements = block_range(block, vectors * head_dim);
        match self {
            Self::F32(values) => [bytemuck::cast_slice_mut(&mut values[elements]), &mut []],
            Self::F16(values) => [bytemuck::cast_slice_mut(&mut values[elements]), &mut []],
            Self::Int8 { codes, scales } => [
                bytemuck::cast_slice_mut(&mut codes[elements]),
                bytemuck::cast_slice_mut(&mut scales[block_range(block, vectors)]),
            ],
        }
    }

    pub(crate) fn copy_block(
        &mut self,
        from: BlockId,
        to: BlockId,
        vectors: usize,
        head_dim: usize,
    ) {
        each_part!(self, head_dim, |values, width| {
            let target = block_range(to, vectors * width).start;
            values.copy_within(block_range(from, vectors * width), target);
        });
    }
}

/// The elements of a block, of which each has this many.
fn block_range(block: BlockId, len: usize) -> Range<usize> {
    block.0 as usize * len..(block.0 as usize + 1) * len
}
