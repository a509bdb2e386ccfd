//! From pieces of files to a tensor of a Hugging Face folder.

use std::{ops::Range, sync::Arc};

use setun_ops::{
    aligned::Aligned,
    ternary::{Scales, ZERO_WEIGHTS},
};

use super::{
    data_range::{DataRange, Orientation, orient},
    integers,
    nbits::{self, IntegerForm, Stored, Zeros},
};
use crate::{
    blocks,
    dtype::Dtype,
    error::CheckpointError,
    master, scaled_codes,
    tensor::{Tensor, TensorData, TensorInfo},
    tensor_assembler::Recipe,
};

/// A tensor of a graph.
#[derive(Debug)]
pub(super) struct Item {
    pub(super) info: TensorInfo,
    pub(super) source: ItemSource,
}

/// What a tensor is made of.
#[derive(Debug)]
pub(super) struct ItemSource {
    pub(super) parts: Vec<DataRange>,
    pub(super) recipe: Conversion,
}

/// How parts become a tensor.
#[derive(Debug)]
pub(super) enum Conversion {
    /// The elements of the first part.
    Floats(Orientation),
    /// A ternary matrix from floats.
    Linear { orientation: Orientation, masters: bool, factor: Factor, node: NodeName },
    /// A ternary matrix from a `MatMulNBits`.
    NBits { form: IntegerForm, zeros: ZeroPart, factor: Factor, node: NodeName },
    /// A table of integers: ternary where they have two bits, floats else.
    Integers { form: IntegerForm, zeros: ZeroPart, node: NodeName },
}

/// Where zero points are: among the parts, by its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ZeroPart {
    Default,
    Packed(usize),
    Flat(usize),
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
    pub(super) fn new(info: TensorInfo, parts: Vec<DataRange>, recipe: Conversion) -> Self {
        Self { info, source: ItemSource { parts, recipe } }
    }
}

impl Recipe for ItemSource {
    fn part(&self, _: &TensorInfo, part: usize) -> Option<(String, Range<u64>)> {
        self.parts.get(part).map(|part| (part.file.to_string(), part.range.clone()))
    }

    fn begin(&self, _: &TensorInfo, part: usize) -> (TensorData, usize) {
        self.parts.get(part).map_or((TensorData::empty(Dtype::U8), 0), DataRange::begin)
    }

    fn is_stored(&self) -> bool {
        let whole = matches!(self.recipe, Conversion::Floats(Orientation::Rows));
        whole && matches!(&self.parts[..], [part] if !part.varints)
    }

    fn finish(self, info: TensorInfo, data: Vec<TensorData>) -> Result<Tensor, CheckpointError> {
        let Self { parts, recipe } = self;
        let no_memory = |error| info.no_memory(error);
        let mut decoded = Vec::with_capacity(data.len());
        for (part, data) in parts.iter().zip(data) {
            let data = part.decode(data).map_err(no_memory)?;
            decoded.push(data.ok_or_else(|| info.rank("elements of its type"))?);
        }
        let mut data = decoded;
        let data = match recipe {
            Conversion::Floats(orientation) => {
                orient(data.remove(0), &orientation, &info).map_err(no_memory)?
            }
            Conversion::Linear { orientation, masters, factor, node } => {
                let factor = factor.value(&data, &node)?;
                let floats = orient(data.swap_remove(0), &orientation, &info).map_err(no_memory)?;
                let floats = TensorInfo { dtype: parts[0].dtype, ..info.clone() }.with(floats);
                let found = quantized(&floats, masters, factor.is_some(), &node);
                let (codes, scales) = found?;
                scaled_codes::join(codes, &times(scales, factor, &node)?).map_err(no_memory)?
            }
            Conversion::NBits { form, zeros, factor, node } => {
                let factor = factor.value(&data, &node)?;
                let stored = stored(&info, &data, form, zeros)?;
                let unpacked = nbits::unpack(&info, &stored);
                let (codes, scales) = unpacked.map_err(|error| node.name(&error))?;
                let scales = scales.fewest();
                check_scaled(&codes, &scales, factor.is_some(), &node)?;
                scaled_codes::join(codes, &times(scales, factor, &node)?).map_err(no_memory)?
            }
            Conversion::Integers { form, zeros, node } => {
                let stored = stored(&info, &data, form, zeros)?;
                if form.bits == 2 {
                    let unpacked = nbits::unpack(&info, &stored);
                    let (codes, scales) = unpacked.map_err(|error| node.name(&error))?;
                    scaled_codes::join(codes, &scales.by_group()).map_err(no_memory)?
                } else {
                    integers::table(&info, &stored)?
                }
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

/// The parts of a matrix of integers: codes, scales, and perhaps zero points.
fn stored<'a>(
    info: &TensorInfo,
    data: &'a [TensorData],
    form: IntegerForm,
    zeros: ZeroPart,
) -> Result<Stored<'a>, CheckpointError> {
    let wrong = || info.rank("codes as bytes, and scales as floats");
    let bytes = |part: usize| match data.get(part) {
        Some(TensorData::Bytes(bytes)) => Ok(&bytes[..]),
        _ => Err(wrong()),
    };
    let floats = |part: usize| data.get(part).and_then(TensorData::floats).ok_or_else(wrong);
    let zeros = match zeros {
        ZeroPart::Default => Zeros::Default,
        ZeroPart::Packed(part) => Zeros::Packed(bytes(part)?),
        ZeroPart::Flat(part) => Zeros::Flat(bytes(part)?),
        ZeroPart::Floats(part) => Zeros::Floats(floats(part)?),
    };
    let (_, columns) = info.expect_matrix()?;
    Ok(Stored { columns, form, codes: bytes(0)?, scales: floats(1)?, zeros })
}

/// Codes and scales of floats: those that they are, or those of master weights.
fn quantized(
    floats: &Tensor,
    masters: bool,
    has_factor: bool,
    node: &NodeName,
) -> Result<(Aligned<u8>, Scales), CheckpointError> {
    match blocks::unpack(floats) {
        Err(CheckpointError::NotTernary { .. }) if masters && !has_factor => {
            let (codes, scale) = master::quantize(floats).map_err(|error| node.name(&error))?;
            Ok((codes, Scales::Tensor(scale)))
        }
        Err(error) => Err(node.name(&error)),
        Ok((codes, scales)) => {
            check_scaled(&codes, &scales, has_factor, node)?;
            Ok((codes, scales))
        }
    }
}

/// Weights of −1, 0 and +1 have their scale somewhere else.
fn check_scaled(
    codes: &[u8],
    scales: &Scales,
    has_factor: bool,
    node: &NodeName,
) -> Result<(), CheckpointError> {
    let has_weights = codes.iter().any(|&codes| codes != ZERO_WEIGHTS);
    if *scales == Scales::Tensor(1.0) && has_weights && !has_factor {
        return Err(node.refuse("its weights are −1, 0 and +1, and no scale of them is known"));
    }
    Ok(())
}

impl Factor {
    /// What the scales are multiplied by, if by anything.
    fn value(self, data: &[TensorData], node: &NodeName) -> Result<Option<f32>, CheckpointError> {
        let (number, divides) = match self {
            Self::None => return Ok(None),
            Self::Number { number, divides } => (number, divides),
            Self::Part { part, divides } => {
                let values = data.get(part).and_then(TensorData::floats).unwrap_or_default();
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
