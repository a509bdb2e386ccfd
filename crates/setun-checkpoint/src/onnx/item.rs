//! From pieces of files to a tensor of a Hugging Face folder.

use std::{ops::Range, sync::Arc};

use half::{bf16, f16};
use setun_ops::{
    aligned::{Aligned, NoMemory},
    ternary::Scales,
};

use super::{
    nbits::{self, Stored, Zeros},
    wire,
};
use crate::{
    blocks,
    dtype::Dtype,
    error::CheckpointError,
    master, scaled_codes,
    tensor::{Tensor, TensorData, TensorInfo},
};

/// A tensor, and what it is made of.
#[derive(Debug)]
pub(super) struct Item {
    pub(super) info: TensorInfo,
    pub(super) parts: Vec<Part>,
    pub(super) recipe: Recipe,
}

/// Elements in a file.
#[derive(Clone, Debug)]
pub(super) struct Part {
    pub(super) file: Arc<str>,
    pub(super) range: Range<u64>,
    pub(super) dtype: Dtype,
    pub(super) elements: usize,
    /// Whether each element is a varint, which holds the bits of a float.
    pub(super) varints: bool,
}

/// How parts become a tensor.
#[derive(Debug)]
pub(super) enum Recipe {
    /// The elements of the first part.
    Floats(Orientation),
    /// A ternary matrix from floats.
    Linear { orientation: Orientation, masters: bool, factor: Factor, node: NodeName },
    /// A ternary matrix from a `MatMulNBits`.
    NBits { block: usize, zeros: ZeroPart, factor: Factor, node: NodeName },
}

/// How a matrix lies in its part.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Orientation {
    /// As it is to be.
    Rows,
    /// Transposed, and these of so many rows.
    Columns { all: usize, taken: Range<usize> },
}

/// Where zero points are: among the parts, by its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ZeroPart {
    Default,
    Packed(usize),
    Floats(usize),
}

/// A number that scales all of a matrix, after it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Factor {
    None,
    /// The number itself.
    Number {
        number: f32,
        divides: bool,
    },
    /// The one element of a part.
    Part {
        part: usize,
        divides: bool,
    },
}

/// The operation that a matrix belongs to, for messages.
#[derive(Clone, Debug)]
pub(super) struct NodeName {
    pub(super) file: Arc<str>,
    pub(super) name: String,
    pub(super) op: String,
}

impl NodeName {
    pub(super) fn refuse(&self, what: impl Into<String>) -> CheckpointError {
        let (file, node, op) = (self.file.to_string(), self.name.clone(), self.op.clone());
        CheckpointError::OnnxNode { file, node, op, what: what.into() }
    }

    /// The same error, with the name of the node.
    fn name(&self, error: &CheckpointError) -> CheckpointError {
        if let CheckpointError::OutOfMemory { .. } = error {
            return error.clone();
        }
        self.refuse(error.to_string())
    }
}

impl Item {
    /// The tensor, once all parts are here.
    pub(super) fn finish(self, data: Vec<TensorData>) -> Result<Tensor, CheckpointError> {
        let Self { info, parts, recipe } = self;
        let no_memory = |error: NoMemory| CheckpointError::OutOfMemory {
            tensor: info.name.clone(),
            bytes: error.bytes as u64,
        };
        let mut decoded = Vec::with_capacity(data.len());
        for (part, data) in parts.iter().zip(data) {
            let data = part.decode(data).map_err(no_memory)?;
            decoded.push(data.ok_or_else(|| info.rank("elements of its type"))?);
        }
        let mut data = decoded;
        let data = match recipe {
            Recipe::Floats(orientation) => {
                orient(data.remove(0), &orientation, &info).map_err(no_memory)?
            }
            Recipe::Linear { orientation, masters, factor, node } => {
                let factor = factor.value(&data, &node)?;
                let floats = orient(data.swap_remove(0), &orientation, &info).map_err(no_memory)?;
                let floats = TensorInfo { dtype: parts[0].dtype, ..info.clone() }.with(floats);
                let found = quantized(&floats, masters, factor.is_some());
                let (codes, scales) = found.map_err(|error| node.name(&error))?;
                scaled_codes::join(codes, &times(scales, factor, &node)?).map_err(no_memory)?
            }
            Recipe::NBits { block, zeros, factor, node } => {
                let factor = factor.value(&data, &node)?;
                let stored = stored(&info, &data, block, zeros)
                    .ok_or_else(|| info.rank("codes as bytes, and scales as floats"))?;
                let unpacked = nbits::unpack(&info, &stored);
                let (codes, scales) = unpacked.map_err(|error| node.name(&error))?;
                check_scaled(&codes, &scales, factor.is_some(), &node)?;
                scaled_codes::join(codes, &times(scales, factor, &node)?).map_err(no_memory)?
            }
        };
        Ok(info.with(data))
    }
}

impl TensorInfo {
    fn with(self, data: TensorData) -> Tensor {
        Tensor { info: self, data }
    }
}

/// The parts of a `MatMulNBits`: codes, scales, and perhaps zero points.
fn stored<'a>(
    info: &TensorInfo,
    data: &'a [TensorData],
    block: usize,
    zeros: ZeroPart,
) -> Option<Stored<'a>> {
    let bytes = |part: usize| match data.get(part)? {
        TensorData::Bytes(bytes) => Some(&bytes[..]),
        _ => None,
    };
    let floats = |part: usize| data.get(part).and_then(nbits::floats);
    let zeros = match zeros {
        ZeroPart::Default => Zeros::Default,
        ZeroPart::Packed(part) => Zeros::Packed(bytes(part)?),
        ZeroPart::Floats(part) => Zeros::Floats(floats(part)?),
    };
    let columns = *info.shape.last()?;
    Some(Stored { columns, block, codes: bytes(0)?, scales: floats(1)?, zeros })
}

/// Codes and scales of floats: those that they are, or those of master weights.
fn quantized(
    floats: &Tensor,
    masters: bool,
    has_factor: bool,
) -> Result<(Aligned<u8>, Scales), CheckpointError> {
    match blocks::unpack(floats) {
        Err(CheckpointError::NotTernary { .. }) if masters && !has_factor => {
            master::quantize(floats).map(|(codes, scale)| (codes, Scales::Tensor(scale)))
        }
        Ok((codes, scales)) if is_unscaled(&codes, &scales) && !has_factor => {
            Err(floats.info.rank(UNSCALED))
        }
        result => result,
    }
}

const UNSCALED: &str = "a scale: −1, 0 and +1 are scaled at a place that is not known";

/// Whether all weights are −1, 0 and +1, and not all 0.
fn is_unscaled(codes: &[u8], scales: &Scales) -> bool {
    *scales == Scales::Tensor(1.0) && codes.iter().any(|&codes| codes != ZERO_WEIGHTS)
}

fn check_scaled(
    codes: &[u8],
    scales: &Scales,
    has_factor: bool,
    node: &NodeName,
) -> Result<(), CheckpointError> {
    if is_unscaled(codes, scales) && !has_factor {
        return Err(node.refuse(format!("it needs {UNSCALED}")));
    }
    Ok(())
}

use setun_ops::ternary::ZERO_WEIGHTS;

impl Factor {
    /// What the scales are multiplied by, if by anything.
    fn value(self, data: &[TensorData], node: &NodeName) -> Result<Option<f32>, CheckpointError> {
        let (number, divides) = match self {
            Self::None => return Ok(None),
            Self::Number { number, divides } => (number, divides),
            Self::Part { part, divides } => {
                let values = data.get(part).and_then(nbits::floats).unwrap_or_default();
                (values.first().copied().unwrap_or(f32::NAN), divides)
            }
        };
        let factor = if divides { 1.0 / number } else { number };
        if number != 0.0 && number.is_finite() && factor.is_finite() {
            return Ok(Some(factor));
        }
        Err(node.refuse(format!("its result is scaled by {number}")))
    }
}

fn times(scales: Scales, factor: Option<f32>, node: &NodeName) -> Result<Scales, CheckpointError> {
    let Some(factor) = factor else {
        return Ok(scales);
    };
    let all = |values: Vec<f32>| values.into_iter().map(|value| value * factor).collect::<Vec<_>>();
    let scales = match scales {
        Scales::Tensor(scale) => Scales::Tensor(scale * factor),
        Scales::Rows(values) => Scales::Rows(all(values)),
        Scales::ColumnGroups { columns, values } => {
            Scales::ColumnGroups { columns, values: all(values) }
        }
    };
    let is_finite = match &scales {
        Scales::Tensor(scale) => scale.is_finite(),
        Scales::Rows(values) | Scales::ColumnGroups { values, .. } => {
            values.iter().all(|value| value.is_finite())
        }
    };
    if is_finite { Ok(scales) } else { Err(node.refuse("a scale times its factor is infinite")) }
}

impl Part {
    /// What its bytes are collected as.
    pub(super) fn empty(&self) -> TensorData {
        if self.varints { TensorData::empty(Dtype::U8) } else { TensorData::empty(self.dtype) }
    }

    /// How many values [`empty`](Self::empty) will hold in the end.
    pub(super) fn values(&self) -> usize {
        if self.varints {
            usize::try_from(self.range.end - self.range.start).unwrap_or(usize::MAX)
        } else {
            self.elements
        }
    }

    /// The elements; none if varints are not as many, or out of range.
    fn decode(&self, data: TensorData) -> Result<Option<TensorData>, NoMemory> {
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
fn orient(
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
