//! The bytes of tensors as a container holds them.

use std::{borrow::Cow, ops::Range};

use half::f16;
use setun_ops::{
    dense::{DenseMatrix, DenseValues},
    ternary::{Scales, TernaryMatrix},
    weight::ScaleKind,
};

use super::{TableType, linear::Target, misplaced, unwritable};
use crate::{
    base3, dense,
    error::CheckpointError,
    outline::{Content, OutlineKind, OutlineTensor},
    tensor::{Tensor, TensorData},
};

/// What stands behind a tensor's name in that of its scales.
pub(super) const SCALE: &str = "_scale";

/// The elements of a tensor to be written.
#[derive(Debug)]
pub(super) enum Encoded {
    Bytes(Vec<u8>),
    Floats(TensorData),
    Halves(DenseMatrix),
    Int8(DenseMatrix),
}

impl Encoded {
    /// Bytes of all elements.
    pub(super) fn len(&self) -> u64 {
        let len = match self {
            Self::Bytes(bytes) => bytes.len(),
            Self::Floats(data) => data.byte_len(),
            Self::Halves(table) => 2 * table.rows() * table.columns(),
            Self::Int8(table) => table.rows() * table.columns(),
        };
        len as u64
    }

    /// Some of the bytes; where elements are cut, at whole ones.
    pub(super) fn bytes(&self, range: Range<u64>) -> Cow<'_, [u8]> {
        let place = |at: u64| usize::try_from(at).unwrap_or(usize::MAX);
        let range = place(range.start)..place(range.end);
        match self {
            Self::Bytes(bytes) => Cow::Borrowed(&bytes[range]),
            Self::Floats(data) => data.stored_bytes(range),
            Self::Halves(table) => halves(table, range.start / 2..range.end / 2),
            Self::Int8(table) => match table.values() {
                DenseValues::Int8Rows { codes, .. } => {
                    codes[range].iter().map(|code| code.cast_unsigned()).collect()
                }
                _ => Cow::Borrowed(&[]),
            },
        }
    }
}

/// Elements of a table, rounded to `F16`.
fn halves(table: &DenseMatrix, elements: Range<usize>) -> Cow<'static, [u8]> {
    let half = |at: usize| match table.values() {
        DenseValues::F32(values) => f16::from_f32(values[at]),
        DenseValues::F16(values) => values[at],
        DenseValues::Bf16(values) => f16::from_f32(values[at].to_f32()),
        DenseValues::Int8Rows { .. } | DenseValues::Ternary(_) => f16::ZERO,
    };
    elements.flat_map(|at| half(at).to_le_bytes()).collect()
}

/// Names and elements of the tensors that a planned one becomes: itself, then its scales.
pub(super) fn encode(
    planned: &OutlineTensor,
    content: Content,
    target: Target,
    table: TableType,
) -> Result<Vec<(String, Encoded)>, CheckpointError> {
    let name = &planned.name;
    match (planned.kind, content) {
        (OutlineKind::Ternary(kind), Content::Ternary(matrix)) => {
            check(planned, &matrix, kind)?;
            let scales = encode_scales(&matrix, |scale| target.stored_scale(name, scale))?;
            let codes = Encoded::Bytes(base3::pack(&matrix));
            Ok(vec![(name.clone(), codes), (format!("{name}{SCALE}"), scales)])
        }
        (OutlineKind::Table { scales, floats }, Content::Ternary(matrix)) => {
            check(planned, &matrix, scales)?;
            if table != TableType::Stored {
                return encode_floats(name, dense::in_floats(name, matrix, floats)?, table);
            }
            let scales = encode_scales(&matrix, Ok)?;
            let codes = Encoded::Bytes(base3::pack(&matrix));
            Ok(vec![(name.clone(), codes), (format!("{name}{SCALE}"), scales)])
        }
        (OutlineKind::Floats(dtype), Content::Floats(tensor)) => {
            tensor.info.expect_shape(&planned.shape)?;
            tensor.info.expect_dtype(&[dtype])?;
            encode_floats(name, tensor, table)
        }
        _ => Err(misplaced(name, "it is not of the kind that was planned")),
    }
}

/// The matrix must be of the size and the scales that were planned.
fn check(
    planned: &OutlineTensor,
    matrix: &TernaryMatrix,
    kind: ScaleKind,
) -> Result<(), CheckpointError> {
    let shape = [matrix.rows(), matrix.columns()];
    if shape[..] == planned.shape && ScaleKind::of(matrix.scales()) == kind {
        return Ok(());
    }
    let what = format!("it is {shape:?}, planned are {:?}, {kind:?}", planned.shape);
    Err(misplaced(&planned.name, &what))
}

fn encode_scales(
    matrix: &TernaryMatrix,
    stored: impl Fn(f32) -> Result<f32, CheckpointError>,
) -> Result<Encoded, CheckpointError> {
    let scales = match matrix.scales() {
        Scales::Tensor(scale) => std::slice::from_ref(scale),
        Scales::Rows(values) | Scales::ColumnGroups { values, .. } => values,
    };
    let mut bytes = Vec::with_capacity(4 * scales.len());
    for &scale in scales {
        bytes.extend(stored(scale)?.to_le_bytes());
    }
    Ok(Encoded::Bytes(bytes))
}

fn encode_floats(
    name: &str,
    tensor: Tensor,
    table: TableType,
) -> Result<Vec<(String, Encoded)>, CheckpointError> {
    if table == TableType::Stored {
        return Ok(vec![(name.to_owned(), Encoded::Floats(tensor.data))]);
    }
    let floats = dense::table(tensor)?;
    if table == TableType::Int8 {
        let no_int8 = |source| CheckpointError::Weight { tensor: name.to_owned(), source };
        let rounded = floats.to_int8_rows().map_err(no_int8)?;
        let scales = match rounded.values() {
            DenseValues::Int8Rows { scales, .. } => {
                scales.iter().flat_map(|scale| scale.to_le_bytes()).collect()
            }
            _ => vec![],
        };
        let scales = (format!("{name}{SCALE}"), Encoded::Bytes(scales));
        return Ok(vec![(name.to_owned(), Encoded::Int8(rounded)), scales]);
    }
    check_halves(name, &floats, table == TableType::F16)?;
    Ok(vec![(name.to_owned(), Encoded::Halves(floats))])
}

/// Every element must stay finite as `F16`, and, where it must be exact, the same.
fn check_halves(name: &str, table: &DenseMatrix, exact: bool) -> Result<(), CheckpointError> {
    let mut wide = vec![0.0; table.columns()];
    for row in 0..table.rows() {
        table.widen_row(row, &mut wide);
        let bad = wide.iter().position(|&value| {
            let half = f16::from_f32(value);
            !half.is_finite() || exact && half.to_f32().to_bits() != value.to_bits()
        });
        if let Some(column) = bad {
            let what =
                format!("{:?} at row {row}, column {column} of `{name}` as F16", wide[column]);
            return Err(unwritable(what, "write the table as it is stored"));
        }
    }
    Ok(())
}
