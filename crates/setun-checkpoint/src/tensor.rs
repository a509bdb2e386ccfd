//! Tensors as a checkpoint holds them.

use std::{borrow::Cow, ops::Range, sync::Arc};

use half::{bf16, f16, slice::HalfFloatSliceExt};
use setun_ops::{
    OpsError,
    aligned::{Aligned, NoMemory},
};

use crate::{
    dtype::{Dtype, FLOATS},
    error::CheckpointError,
    side_by_side::{RUN_ROWS, side_by_side},
};

/// Name, type, shape and place of a tensor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TensorInfo {
    /// Name, for example `model.norm.weight`.
    pub name: String,
    /// Type of the elements.
    pub dtype: Dtype,
    /// Shape; the last dimension is contiguous.
    pub shape: Vec<usize>,
    /// Name of the file that holds it.
    pub file: Arc<str>,
    /// Its bytes in that file.
    pub range: Range<u64>,
    /// Where the rows of this many heads are paired for the other `RoPE` (rows 2i and 2i + 1 turn
    /// together): a reader puts them in order, i and i + d/2, before it hands the tensor out.
    pub paired_heads: Option<usize>,
}

impl TensorInfo {
    /// Number of elements.
    #[must_use]
    pub fn elements(&self) -> usize {
        self.shape.iter().product()
    }

    /// Number of bytes.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.range.end - self.range.start
    }

    /// # Errors
    ///
    /// [`CheckpointError::Shape`] if the shape is not `expected`.
    pub fn expect_shape(&self, expected: &[usize]) -> Result<(), CheckpointError> {
        if self.shape == expected {
            return Ok(());
        }
        Err(CheckpointError::Shape {
            tensor: self.name.clone(),
            expected: expected.to_vec(),
            found: self.shape.clone(),
        })
    }

    /// # Errors
    ///
    /// [`CheckpointError::Dtype`] if the type is none of `expected`.
    pub fn expect_dtype(&self, expected: &[Dtype]) -> Result<(), CheckpointError> {
        if expected.contains(&self.dtype) {
            return Ok(());
        }
        Err(CheckpointError::Dtype {
            tensor: self.name.clone(),
            expected: expected.to_vec(),
            found: self.dtype,
        })
    }

    /// Rows and columns of a matrix.
    ///
    /// # Errors
    ///
    /// [`CheckpointError::Rank`] if there are not two dimensions.
    pub fn expect_matrix(&self) -> Result<(usize, usize), CheckpointError> {
        match self.shape[..] {
            [rows, columns] => Ok((rows, columns)),
            _ => Err(self.rank("a matrix [rows, columns]")),
        }
    }

    /// Zeroed bytes `[rows, row_bytes]` for what this tensor is turned into.
    pub(crate) fn zeroed(
        &self,
        rows: usize,
        row_bytes: usize,
    ) -> Result<Aligned<u8>, CheckpointError> {
        let bytes = rows.saturating_mul(row_bytes);
        Aligned::filled(0, bytes).map_err(|error| self.no_memory(error))
    }

    pub(crate) fn no_memory(&self, NoMemory { bytes }: NoMemory) -> CheckpointError {
        CheckpointError::OutOfMemory { tensor: self.name.clone(), bytes: bytes as u64 }
    }

    pub(crate) fn not_ternary(&self, row: usize, column: usize) -> CheckpointError {
        CheckpointError::NotTernary { tensor: self.name.clone(), row, column }
    }

    pub(crate) fn not_float(&self) -> CheckpointError {
        let (tensor, expected) = (self.name.clone(), FLOATS.to_vec());
        CheckpointError::Dtype { tensor, expected, found: self.dtype }
    }

    pub(crate) fn bad_scale(&self, found: f32) -> CheckpointError {
        CheckpointError::Scale { tensor: self.name.clone(), found }
    }

    pub(crate) fn no_weight(&self, source: OpsError) -> CheckpointError {
        CheckpointError::Weight { tensor: self.name.clone(), source }
    }

    pub(crate) fn rank(&self, expected: &'static str) -> CheckpointError {
        let (tensor, found) = (self.name.clone(), self.shape.clone());
        CheckpointError::Rank { tensor, expected, found }
    }
}

/// The tensor of a name.
///
/// # Errors
///
/// [`CheckpointError::MissingTensor`], with up to three similar names.
pub fn find<'a>(tensors: &'a [TensorInfo], name: &str) -> Result<&'a TensorInfo, CheckpointError> {
    tensors.iter().find(|tensor| tensor.name == name).ok_or_else(|| missing(tensors, name))
}

/// The error for a tensor that is not there, with up to three similar names.
#[must_use]
pub fn missing(tensors: &[TensorInfo], name: &str) -> CheckpointError {
    const MOST: usize = 3;
    let mut similar: Vec<_> = tensors
        .iter()
        .map(|tensor| (shared_ends(&tensor.name, name), tensor.name.as_str()))
        .filter(|(shared, _)| shared * 4 >= name.len() * 3)
        .collect();
    similar.sort_by_key(|&(shared, name)| (std::cmp::Reverse(shared), name));
    CheckpointError::MissingTensor {
        name: name.to_owned(),
        similar: similar.into_iter().take(MOST).map(|(_, name)| name.to_owned()).collect(),
    }
}

/// Bytes that two names share at their starts and ends, counted once.
fn shared_ends(a: &str, b: &str) -> usize {
    let (a, b) = (a.as_bytes(), b.as_bytes());
    let start = a.iter().zip(b).take_while(|(a, b)| a == b).count();
    let end = a[start..].iter().rev().zip(b[start..].iter().rev()).take_while(|(a, b)| a == b);
    start + end.count()
}

/// A tensor with its elements.
#[derive(Clone, Debug, PartialEq)]
pub struct Tensor {
    /// Name, type and shape.
    pub info: TensorInfo,
    /// Elements, in row-major order.
    pub data: TensorData,
}

impl Tensor {
    /// A tensor that was made in memory and lies in no file.
    #[must_use]
    pub fn new(name: &str, dtype: Dtype, shape: &[usize], data: TensorData) -> Self {
        let (name, shape, file) = (name.to_owned(), shape.to_vec(), "".into());
        let range = 0..data.byte_len() as u64;
        Self { info: TensorInfo { name, dtype, shape, file, range, paired_heads: None }, data }
    }
}

/// The elements of a [`Tensor`], in their own type, so that a table moves into the engine
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

/// # Errors
///
/// If the tensor has no floats, or one is not a finite number.
pub fn check_finite(tensor: &Tensor) -> Result<(), CheckpointError> {
    let bad = match &tensor.data {
        TensorData::F32(values) => first_bad(values, f32::is_finite, |x| x),
        TensorData::F16(values) => first_bad(values, f16::is_finite, f16::to_f32),
        TensorData::Bf16(values) => first_bad(values, bf16::is_finite, bf16::to_f32),
        TensorData::Bytes(_) => return Err(tensor.info.not_float()),
    };
    match bad {
        None => Ok(()),
        Some((index, found)) => {
            Err(CheckpointError::NotFinite { tensor: tensor.info.name.clone(), index, found })
        }
    }
}

fn first_bad<T: Copy>(
    values: &[T],
    is_finite: impl Fn(T) -> bool,
    widen: impl Fn(T) -> f32,
) -> Option<(usize, f32)> {
    // Without an early end the scan of a large table runs in vectors.
    const CHUNK: usize = 4096;
    let bad = values
        .chunks(CHUNK)
        .position(|chunk| chunk.iter().fold(false, |bad, &value| bad | !is_finite(value)))?;
    let within = values[bad * CHUNK..].iter().position(|&value| !is_finite(value))?;
    let index = bad * CHUNK + within;
    Some((index, widen(values[index])))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn info(name: &str, shape: &[usize]) -> TensorInfo {
        Tensor::new(name, Dtype::Bf16, shape, TensorData::empty(Dtype::Bf16)).info
    }

    #[test]
    fn wrong_shapes_and_types_are_named() {
        let info = info("model.norm.weight", &[64]);
        assert_eq!(info.expect_shape(&[64]), Ok(()));
        assert_eq!(info.expect_dtype(&[Dtype::F32, Dtype::Bf16]), Ok(()));
        assert_eq!(
            info.expect_shape(&[64, 1]).unwrap_err().to_string(),
            "tensor `model.norm.weight` has shape [64], expected [64, 1]"
        );
        assert_eq!(
            info.expect_dtype(&[Dtype::F32, Dtype::F16]).unwrap_err().to_string(),
            "tensor `model.norm.weight` has element type BF16, expected F32 or F16"
        );
        assert_eq!(
            info.expect_matrix().unwrap_err().to_string(),
            "tensor `model.norm.weight` has shape [64], expected a matrix [rows, columns]"
        );
    }

    #[test]
    fn a_missing_tensor_names_similar_ones() {
        let tensors = [
            info("model.layers.0.mlp.ffn_layernorm.weight", &[1]),
            info("model.layers.0.self_attn.q_proj.weight", &[1]),
            info("lm_head.weight", &[1]),
        ];
        assert!(find(&tensors, "lm_head.weight").is_ok());
        let error = find(&tensors, "model.layers.0.mlp.ffn_sub_norm.weight").unwrap_err();
        assert_eq!(
            error.to_string(),
            "tensor `model.layers.0.mlp.ffn_sub_norm.weight` is missing; \
             there is `model.layers.0.mlp.ffn_layernorm.weight`"
        );
        let error = find(&tensors, "x").unwrap_err();
        assert_eq!(error.to_string(), "tensor `x` is missing");
    }

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
