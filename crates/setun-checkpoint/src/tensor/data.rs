//! The elements of tensors, in their own types.

use std::{borrow::Cow, ops::Range};

use half::{bf16, f16, slice::HalfFloatSliceExt};
use setun_ops::aligned::{Aligned, NoMemory};

use super::TensorInfo;
use crate::{
    dtype::Dtype,
    error::CheckpointError,
    side_by_side::{RUN_ROWS, side_by_side},
};

/// The elements of a [`Tensor`](super::Tensor), in their own type, so that a table moves into the engine
/// without a copy.
#[derive(Clone, Debug, PartialEq)]
pub enum TensorData {
    /// `F32`
    F32(Aligned<f32>),
    /// `F16`
    F16(Aligned<f16>),
    /// `BF16`
    Bf16(Aligned<bf16>),
    /// The bytes of every other type, as they are in the file.
    Bytes(Aligned<u8>),
}

/// Elements are allocated for at most this many times the bytes that have arrived: a header that
/// lies about a size costs nothing, and a large tensor is soon allocated whole.
const GROWTH: usize = 8;

impl TensorData {
    pub(crate) fn empty(dtype: Dtype) -> Self {
        match dtype {
            Dtype::F32 => Self::F32(Aligned::new()),
            Dtype::F16 => Self::F16(Aligned::new()),
            Dtype::Bf16 => Self::Bf16(Aligned::new()),
            _ => Self::Bytes(Aligned::new()),
        }
    }

    /// How many values of its kind hold the whole tensor: elements, or bytes.
    pub(crate) fn stored_length(&self, info: &TensorInfo) -> usize {
        match self {
            Self::Bytes(_) => usize::try_from(info.bytes()).unwrap_or(usize::MAX),
            _ => info.elements(),
        }
    }

    /// Appends little-endian elements. `elements` is how many there will be in the end; `bytes`
    /// are whole elements.
    pub(crate) fn append(&mut self, bytes: &[u8], elements: usize) -> Result<(), NoMemory> {
        match self {
            Self::F32(values) => extend(values, bytes, elements, f32::from_le_bytes),
            Self::F16(values) => extend(values, bytes, elements, f16::from_le_bytes),
            Self::Bf16(values) => extend(values, bytes, elements, bf16::from_le_bytes),
            Self::Bytes(values) => {
                reserve(values, bytes.len(), elements)?;
                values.extend_from_slice(bytes)
            }
        }
    }

    /// Widens the floats from `start` on exactly; false if the elements are bytes.
    #[must_use]
    pub(crate) fn widen(&self, start: usize, wide: &mut [f32]) -> bool {
        let range = start..start + wide.len();
        match self {
            Self::F32(values) => wide.copy_from_slice(&values[range]),
            Self::F16(values) => values[range].convert_to_f32_slice(wide),
            Self::Bf16(values) => values[range].convert_to_f32_slice(wide),
            Self::Bytes(_) => return false,
        }
        true
    }

    /// All floats, widened exactly; none if the elements are bytes.
    pub(crate) fn floats(&self) -> Option<Vec<f32>> {
        match self {
            Self::F32(values) => Some(values.to_vec()),
            Self::F16(values) => Some(values.to_f32_vec()),
            Self::Bf16(values) => Some(values.to_f32_vec()),
            Self::Bytes(_) => None,
        }
    }

    /// Bytes of all elements.
    pub(crate) fn byte_len(&self) -> usize {
        match self {
            Self::F32(values) => size_of_val(&**values),
            Self::F16(values) => size_of_val(&**values),
            Self::Bf16(values) => size_of_val(&**values),
            Self::Bytes(bytes) => bytes.len(),
        }
    }

    /// Some of these bytes as a file has them; where elements are cut, whole ones.
    pub(crate) fn stored_bytes(&self, range: Range<usize>) -> Cow<'_, [u8]> {
        let of = |size: usize| range.start / size..range.end / size;
        match self {
            Self::F32(values) => values[of(4)].iter().flat_map(|x| x.to_le_bytes()).collect(),
            Self::F16(values) => values[of(2)].iter().flat_map(|x| x.to_le_bytes()).collect(),
            Self::Bf16(values) => values[of(2)].iter().flat_map(|x| x.to_le_bytes()).collect(),
            Self::Bytes(bytes) => Cow::Borrowed(&bytes[range]),
        }
    }

    /// All of these bytes, in pieces of at most 4 MiB, each with its place among them.
    pub(crate) fn in_pieces(&self, write: &mut dyn FnMut(u64, Vec<u8>)) {
        let (end, piece) = (self.byte_len(), PIECE);
        for start in (0..end).step_by(piece) {
            write(start as u64, self.stored_bytes(start..end.min(start + piece)).into_owned());
        }
    }
}

impl TensorInfo {
    /// Floats of this matrix' type, of which `fill` writes each row; rounded to nearest.
    pub(crate) fn float_rows(
        &self,
        fill: impl Fn(usize, &mut [f32]) + Sync + Send,
    ) -> Result<TensorData, CheckpointError> {
        let data = match self.dtype {
            Dtype::F16 => rounded_rows(self, fill, f16::from_f32).map(TensorData::F16),
            Dtype::Bf16 => rounded_rows(self, fill, bf16::from_f32).map(TensorData::Bf16),
            _ => rounded_rows(self, fill, |value| value).map(TensorData::F32),
        };
        data.map_err(|error| self.no_memory(error))
    }
}

fn rounded_rows<T: Copy + Default + Send>(
    info: &TensorInfo,
    fill: impl Fn(usize, &mut [f32]) + Sync + Send,
    round: impl Fn(f32) -> T + Sync + Send,
) -> Result<Aligned<T>, NoMemory> {
    let columns = info.shape.last().copied().unwrap_or(0).max(1);
    let mut values = Aligned::filled(T::default(), info.elements())?;
    let runs = values.chunks_mut(RUN_ROWS * columns).enumerate().collect();
    side_by_side(runs, |(run, values)| {
        let mut wide = vec![0.0; columns];
        for (row, values) in (run * RUN_ROWS..).zip(values.chunks_exact_mut(columns)) {
            fill(row, &mut wide);
            values.iter_mut().zip(&wide).for_each(|(value, wide)| *value = round(*wide));
        }
    });
    Ok(values)
}

/// Bytes of a piece that is written.
const PIECE: usize = 4 << 20;

fn extend<T: Copy + Default, const SIZE: usize>(
    values: &mut Aligned<T>,
    bytes: &[u8],
    elements: usize,
    from_le_bytes: impl Fn([u8; SIZE]) -> T,
) -> Result<(), NoMemory> {
    let (arrived, rest) = bytes.as_chunks::<SIZE>();
    debug_assert!(rest.is_empty(), "pieces are whole elements");
    reserve(values, arrived.len(), elements)?;
    values.extend(arrived.iter().map(|bytes| from_le_bytes(*bytes)))
}

fn reserve<T: Copy + Default>(
    values: &mut Aligned<T>,
    arrived: usize,
    elements: usize,
) -> Result<(), NoMemory> {
    let needed = values.len() + arrived;
    if needed <= values.capacity() {
        return Ok(());
    }
    let capacity = elements.min(needed.saturating_mul(GROWTH)).max(needed);
    values.reserve(capacity - values.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_follows_the_bytes_that_arrive() {
        const CLAIMED: usize = 1 << 40;
        const LINE: usize = 64; // what alignment may add
        let mut values: Aligned<u8> = Aligned::new();
        for _ in 0..10 {
            reserve(&mut values, 100, CLAIMED).unwrap();
            values.extend_from_slice(&[0; 100]).unwrap();
            assert!(values.capacity() <= GROWTH * values.len() + LINE, "{}", values.capacity());
        }
        let mut honest: Aligned<u8> = Aligned::new();
        reserve(&mut honest, 300, 2000).unwrap();
        assert!((2000..=2000 + LINE).contains(&honest.capacity()), "never more than the tensor");
    }

    #[test]
    fn elements_are_little_endian() {
        let mut data = TensorData::empty(Dtype::F32);
        data.append(&1.5_f32.to_le_bytes(), 2).unwrap();
        data.append(&(-2.0_f32).to_le_bytes(), 2).unwrap();
        assert_eq!(data, TensorData::F32(vec![1.5, -2.0].into()));
    }
}
