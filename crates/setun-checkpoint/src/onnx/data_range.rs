//! Elements in a file, and how a matrix lies in them.

use std::{ops::Range, sync::Arc};

use half::{bf16, f16};
use setun_ops::aligned::{Aligned, NoMemory};

use super::wire;
use crate::{
    dtype::Dtype,
    tensor::{TensorData, TensorInfo},
};

/// Elements in a file.
#[derive(Clone, Debug)]
pub(super) struct DataRange {
    pub(super) file: Arc<str>,
    pub(super) range: Range<u64>,
    pub(super) dtype: Dtype,
    pub(super) elements: usize,
    /// Whether each element is a varint, which holds the bits of a float.
    pub(super) varints: bool,
}

/// How a matrix lies in its part.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Orientation {
    /// As it is to be.
    Rows,
    /// Transposed, and these of this many rows.
    Columns { all: usize, taken: Range<usize> },
}

impl DataRange {
    /// What its bytes are collected as, and how many values that will be.
    pub(super) fn begin(&self) -> (TensorData, usize) {
        if self.varints {
            let bytes = usize::try_from(self.range.end - self.range.start);
            (TensorData::empty(Dtype::U8), bytes.unwrap_or(usize::MAX))
        } else {
            (TensorData::empty(self.dtype), self.elements)
        }
    }

    /// The elements; none if varints are not as many, or out of range.
    pub(super) fn decode(&self, data: TensorData) -> Result<Option<TensorData>, NoMemory> {
        let TensorData::Bytes(bytes) = &data else {
            return Ok(Some(data));
        };
        if !self.varints {
            return Ok(Some(data));
        }
        let size = if self.dtype == Dtype::U8 { 1 } else { 2 };
        let (mut decoded, mut rest) = (TensorData::empty(self.dtype), &bytes[..]);
        for _ in 0..self.elements {
            let Ok(Some((value, used))) = wire::varint(rest) else {
                return Ok(None);
            };
            if value >> (8 * size) != 0 {
                return Ok(None);
            }
            decoded.append(&value.to_le_bytes()[..size], self.elements)?;
            rest = &rest[used..];
        }
        Ok(rest.is_empty().then_some(decoded))
    }
}

/// The elements of a matrix with its rows in order.
pub(super) fn orient(
    data: TensorData,
    orientation: &Orientation,
    info: &TensorInfo,
) -> Result<TensorData, NoMemory> {
    let Orientation::Columns { all, taken } = orientation else {
        return Ok(data);
    };
    let columns = info.shape.last().copied().unwrap_or(0);
    Ok(match data {
        TensorData::F32(values) => TensorData::F32(transposed(&values, *all, taken, columns)?),
        TensorData::F16(values) => {
            TensorData::F16(transposed::<f16>(&values, *all, taken, columns)?)
        }
        TensorData::Bf16(values) => {
            TensorData::Bf16(transposed::<bf16>(&values, *all, taken, columns)?)
        }
        bytes @ TensorData::Bytes(_) => bytes,
    })
}

/// Rows `taken` of `all`, from `[columns, all]`. Tiles keep both sides in the cache.
fn transposed<T: Copy + Default>(
    values: &[T],
    all: usize,
    taken: &Range<usize>,
    columns: usize,
) -> Result<Aligned<T>, NoMemory> {
    const TILE: usize = 32;
    let mut rows = Aligned::filled(T::default(), taken.len() * columns)?;
    for first in (0..columns).step_by(TILE) {
        let tile = first..columns.min(first + TILE);
        for (row, out) in taken.clone().zip(rows.chunks_exact_mut(columns.max(1))) {
            for column in tile.clone() {
                out[column] = values[column * all + row];
            }
        }
    }
    Ok(rows)
}
