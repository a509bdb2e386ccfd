//! The tensors of a file: their infos and their bytes.

use std::ops::Range;

use setun_ops::{
    ternary::{Scales, TernaryMatrix},
    weight::ScaleKind,
};

use super::{
    super::{
        places::aligned,
        rope::{self, Llama3},
        types,
    },
    ALIGNMENT, Content, Dtype, HYBRID, ModelConfig, OutlineTensor, Tensor, blocks,
    hybrid::Change,
    names, unwritable, values,
};
use crate::{dense, dtype::FLOATS, error::CheckpointError, outline::OutlineKind, paired_rows};

/// A tensor of the outline, and the tensors of the file that hold it.
#[derive(Clone, Debug)]
pub(super) struct Entry {
    pub(super) name: String,
    shape: Vec<usize>,
    file_name: String,
    dtype: Dtype,           // in the file
    beside: Option<String>, // name of the tensor of its scale
    heads: Option<usize>,   // whose rows are paired in the file
    change: Change,
}

impl Entry {
    pub(super) fn new(
        tensor: &OutlineTensor,
        target: Dtype,
        config: &ModelConfig,
        architecture: &str,
        scale_beside: bool,
    ) -> Result<Self, CheckpointError> {
        let name = &tensor.name;
        let is_hybrid = architecture == HYBRID;
        let file_name = names::theirs(name, is_hybrid);
        let file_name = file_name.ok_or_else(|| unwritable(format!("`{name}`"), "leave it out"))?;
        let dtype = match tensor.kind {
            OutlineKind::Floats(_) if tensor.shape.len() < 2 => Dtype::F32,
            // llama.cpp convolves in this type only.
            OutlineKind::Floats(_) if name.ends_with(".conv1d.weight") => Dtype::F32,
            OutlineKind::Floats(dtype) => dtype,
            OutlineKind::Table { scales, floats } if !holds(target, scales, &tensor.shape) => {
                floats
            }
            OutlineKind::Ternary(_) | OutlineKind::Table { .. } => target,
        };
        if dtype.bytes(&tensor.shape).is_none() {
            let what = format!("`{name}` {:?} as {dtype}, whose blocks do not fit", tensor.shape);
            return Err(unwritable(
                what,
                "write .setun or safetensors, or I2_S for TQ1_0 or TQ2_0",
            ));
        }
        let scale = name.strip_suffix(".weight").map(|linear| format!("{linear}.weight_scale"));
        let has_beside = scale_beside && dtype != Dtype::I2S;
        let is_tensor = matches!(tensor.kind, OutlineKind::Ternary(ScaleKind::Tensor));
        let beside = scale.filter(|_| has_beside && is_tensor);
        let heads = match names::is_queries(name).filter(|_| architecture == "llama") {
            Some(true) => Some(config.heads),
            Some(false) => Some(config.kv_heads),
            None => None,
        };
        Ok(Self {
            name: name.clone(),
            shape: tensor.shape.clone(),
            file_name,
            dtype,
            beside: beside.and_then(|name| names::theirs(&name, is_hybrid)),
            heads,
            change: Change::of(name, config),
        })
    }

    /// How many tensors of the file hold it.
    pub(super) fn tensors(&self) -> usize {
        1 + usize::from(self.beside.is_some())
    }

    /// Its bytes in the file, with what pads them, in pieces with their places from its start.
    pub(super) fn encode(
        &self,
        content: Content,
        write: &mut dyn FnMut(u64, Vec<u8>),
    ) -> Result<(), CheckpointError> {
        let mut bytes = match content {
            Content::Ternary(matrix) if FLOATS.contains(&self.dtype) => {
                let table = dense::in_floats(&self.name, matrix, self.dtype)?;
                return self.encode_table(&table, write);
            }
            Content::Ternary(matrix) => self.encode_ternary(matrix)?,
            Content::Floats(tensor) if self.shape.len() < 2 => self.encode_vector(&tensor)?,
            Content::Floats(tensor) => return self.encode_table(&tensor, write),
        };
        pad(&mut bytes);
        write(0, bytes);
        Ok(())
    }

    fn encode_ternary(&self, mut matrix: TernaryMatrix) -> Result<Vec<u8>, CheckpointError> {
        if self.shape[..] != [matrix.rows(), matrix.columns()] {
            let found = vec![matrix.rows(), matrix.columns()];
            return Err(self.wrong_shape(found));
        }
        let refused = |source| CheckpointError::Weight { tensor: self.name.clone(), source };
        if let Some(heads) = self.heads {
            matrix = paired_rows::paired_matrix(&matrix, heads).map_err(refused)?;
        }
        matrix = self.change.matrix(matrix).map_err(refused)?;
        let mut scale = None;
        if let (Some(_), Scales::Tensor(found)) = (&self.beside, matrix.scales()) {
            scale = Some(*found);
            let (rows, columns) = (matrix.rows(), matrix.columns());
            let codes = matrix.codes().to_vec();
            matrix =
                TernaryMatrix::new(rows, columns, codes, Scales::Tensor(1.0)).map_err(refused)?;
        }
        let mut bytes = match self.dtype {
            Dtype::I2S => blocks::encode_i2_s(&self.name, &matrix)?,
            dtype => blocks::encode(&self.name, &matrix, dtype)?,
        };
        if self.beside.is_some() {
            let scale = scale.unwrap_or(1.0);
            if scale == 0.0 {
                return Err(CheckpointError::Scale { tensor: self.name.clone(), found: scale });
            }
            pad(&mut bytes);
            bytes.extend_from_slice(&scale.to_le_bytes());
        }
        Ok(bytes)
    }

    fn encode_vector(&self, tensor: &Tensor) -> Result<Vec<u8>, CheckpointError> {
        self.check_shape(tensor)?;
        let mut values = self.change.elements(dense::vector(tensor)?);
        if let Some(heads) = self.heads {
            values = paired_rows::paired(&values, heads);
        }
        let bytes: Vec<u8> = values.into_iter().flat_map(f32::to_le_bytes).collect();
        self.in_rows(&bytes)
    }

    /// Bytes of all rows, in the order of the file.
    fn in_rows(&self, bytes: &[u8]) -> Result<Vec<u8>, CheckpointError> {
        let rows = self.shape.first().copied().unwrap_or(0);
        let moved = self.change.rows(bytes, rows);
        moved.ok_or_else(|| unwritable(format!("`{}` of {rows} rows", self.name), "write .setun"))
    }

    fn encode_table(
        &self,
        tensor: &Tensor,
        write: &mut dyn FnMut(u64, Vec<u8>),
    ) -> Result<(), CheckpointError> {
        self.check_shape(tensor)?;
        if self.dtype == Dtype::F32 && tensor.info.dtype != Dtype::F32 {
            let values = dense::elements(tensor)?;
            let bytes: Vec<u8> = values.into_iter().flat_map(f32::to_le_bytes).collect();
            return self.write_rows(&bytes, write);
        }
        tensor.info.expect_dtype(&[self.dtype])?;
        if self.change.moves_rows() {
            let bytes = tensor.data.stored_bytes(0..tensor.data.byte_len());
            return self.write_rows(&bytes, write);
        }
        tensor.data.in_pieces(write);
        let end = tensor.data.byte_len();
        let padding = end.next_multiple_of(alignment()) - end;
        if padding > 0 {
            write(end as u64, vec![0; padding]);
        }
        Ok(())
    }

    /// A small table, whose rows may move.
    fn write_rows(
        &self,
        bytes: &[u8],
        write: &mut dyn FnMut(u64, Vec<u8>),
    ) -> Result<(), CheckpointError> {
        let mut bytes = self.in_rows(bytes)?;
        pad(&mut bytes);
        write(0, bytes);
        Ok(())
    }

    fn check_shape(&self, tensor: &Tensor) -> Result<(), CheckpointError> {
        if self.shape == tensor.info.shape {
            return Ok(());
        }
        Err(self.wrong_shape(tensor.info.shape.clone()))
    }

    fn wrong_shape(&self, found: Vec<usize>) -> CheckpointError {
        let (tensor, expected) = (self.name.clone(), self.shape.clone());
        CheckpointError::Shape { tensor, expected, found }
    }
}

/// Whether a table with scales of a kind can be written as a type, which has them in `f16`: those
/// of groups come from such types.
fn holds(target: Dtype, scales: ScaleKind, shape: &[usize]) -> bool {
    let (Some(format), ScaleKind::ColumnGroups(width)) = (blocks::block_format(target), scales)
    else {
        return false;
    };
    let columns = shape.last().copied().unwrap_or(0);
    width.is_multiple_of(format.columns) && columns.is_multiple_of(format.columns)
}

fn pad(bytes: &mut Vec<u8>) {
    bytes.resize(bytes.len().next_multiple_of(alignment()), 0);
}

fn alignment() -> usize {
    usize::try_from(ALIGNMENT).unwrap_or(1)
}

/// Writes the infos of all tensors and ends the header; the ranges of the entries' data count from
/// its end. Divisors of the rotary frequencies come before all, and are a part of the header.
pub(super) fn write_infos(
    bytes: &mut Vec<u8>,
    llama3: Option<Llama3>,
    config: &ModelConfig,
    entries: &[Entry],
) -> Result<Vec<Range<u64>>, CheckpointError> {
    let divisors =
        llama3.map(|llama3| llama3.divisors(config.rope.theta, config.rope.dimensions / 2));
    let mut offset = 0;
    if let Some(divisors) = &divisors {
        offset = write_info(bytes, rope::TENSOR, &[divisors.len()], Dtype::F32, 0)?;
    }
    let before = offset;
    let mut ranges = Vec::with_capacity(entries.len());
    for entry in entries {
        let start = offset;
        offset = write_info(bytes, &entry.file_name, &entry.shape, entry.dtype, offset)?;
        if let Some(name) = &entry.beside {
            offset = write_info(bytes, name, &[1], Dtype::F32, offset)?;
        }
        ranges.push(start - before..offset - before);
    }
    pad(bytes);
    #[expect(clippy::cast_possible_truncation, reason = "as llama.cpp holds them")]
    let narrow = |divisor: f64| (divisor as f32).to_le_bytes();
    bytes.extend(divisors.into_iter().flatten().flat_map(narrow));
    pad(bytes);
    Ok(ranges)
}

/// Writes the info of a tensor; the place of the next one.
fn write_info(
    bytes: &mut Vec<u8>,
    name: &str,
    shape: &[usize],
    dtype: Dtype,
    offset: u64,
) -> Result<u64, CheckpointError> {
    let too_large = || unwritable(format!("`{name}` {shape:?} as {dtype}"), "write .setun");
    let size =
        dtype.bytes(shape).and_then(|size| offset.checked_add(size)).ok_or_else(too_large)?;
    let id = types::id(dtype).ok_or_else(too_large)?;
    let rank = u32::try_from(shape.len()).map_err(|_| too_large())?;
    values::text(bytes, name);
    bytes.extend_from_slice(&rank.to_le_bytes());
    bytes.extend(shape.iter().rev().flat_map(|&size| (size as u64).to_le_bytes()));
    bytes.extend_from_slice(&id.to_le_bytes());
    bytes.extend_from_slice(&offset.to_le_bytes());
    aligned(size, ALIGNMENT).ok_or_else(too_large)
}
