//! Weights in a device's memory.

use bytemuck::cast_slice;
use setun_ops::{
    DenseMatrix, OpsError, TernaryMatrix, WeightData, WeightSpec,
    dense::DenseValues,
    ternary::{PLANE_COLUMNS, Scales},
    weight::{DenseKind, WeightKind},
};

use crate::{executor::Executor, kernel::Table};

/// A weight in a device's memory; clones share it.
#[derive(Clone, Debug)]
pub struct GpuWeight<B> {
    pub(crate) spec: WeightSpec,
    pub(crate) form: WeightFormat,
    pub(crate) parts: Vec<WeightSlice<B>>,
}

/// What a kernel needs to know of the form.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WeightFormat {
    /// Codes, then scales: of each row this many, for this many planes each.
    Ternary { groups: usize, group_planes: usize },
    /// A table: vectors of four words of a row.
    Dense { table: Table, stride: usize },
    /// Floats.
    Floats,
}

/// Rows of a table that share a buffer; all of any other weight.
#[derive(Clone, Debug)]
pub(crate) struct WeightSlice<B> {
    pub(crate) buffer: B,
    pub(crate) first: usize,
    pub(crate) rows: usize,
}

impl<B: Clone> GpuWeight<B> {
    pub(crate) fn upload<E: Executor<Buffer = B>>(
        executor: &mut E,
        weight: WeightData,
    ) -> Result<Self, OpsError> {
        let spec = weight.spec();
        match weight {
            WeightData::Ternary(matrix) => ternary(executor, spec, &matrix),
            WeightData::Dense(matrix) => dense(executor, spec, &matrix),
            WeightData::Vector(values) => floats(executor, spec, &[&values]),
            WeightData::Rope(table) => floats(executor, spec, &[table.cos(), table.sin()]),
        }
    }
}

fn floats<E: Executor>(
    executor: &mut E,
    spec: WeightSpec,
    runs: &[&[f32]],
) -> Result<GpuWeight<E::Buffer>, OpsError> {
    let bytes: usize = runs.iter().map(|run| size_of_val(*run)).sum();
    let buffer = executor.create_buffer("a vector", bytes.next_multiple_of(QUAD_BYTES) as u64)?;
    let mut offset = 0;
    for run in runs {
        executor.write(&buffer, offset, cast_slice(run))?;
        offset += size_of_val(*run) as u64;
    }
    let parts = vec![WeightSlice { buffer, first: 0, rows: 1 }];
    Ok(GpuWeight { spec, form: WeightFormat::Floats, parts })
}

fn ternary<E: Executor>(
    executor: &mut E,
    spec: WeightSpec,
    matrix: &TernaryMatrix,
) -> Result<GpuWeight<E::Buffer>, OpsError> {
    let tensor;
    let (scales, group_columns) = match matrix.scales() {
        Scales::Tensor(scale) => {
            tensor = vec![*scale; matrix.rows()];
            (&tensor, matrix.columns())
        }
        Scales::Rows(values) => (values, matrix.columns()),
        Scales::ColumnGroups { columns, values } => (values, *columns),
    };
    let codes = matrix.codes();
    let bytes = codes.len() + size_of_val(scales.as_slice());
    // Kernels read vectors of four words.
    let buffer =
        executor.create_buffer("a ternary matrix", bytes.next_multiple_of(QUAD_BYTES) as u64)?;
    executor.write(&buffer, 0, codes)?;
    executor.write(&buffer, codes.len() as u64, cast_slice(scales))?;
    let form = WeightFormat::Ternary {
        groups: matrix.columns().div_ceil(group_columns),
        group_planes: group_columns.div_ceil(PLANE_COLUMNS),
    };
    let parts = vec![WeightSlice { buffer, first: 0, rows: matrix.rows() }];
    Ok(GpuWeight { spec, form, parts })
}

impl Table {
    /// The elements of a matrix once a device has it.
    #[must_use]
    pub fn of(matrix: &DenseMatrix) -> Self {
        Self::of_kind(WeightKind::Dense(DenseKind::of(matrix.values())))
    }

    /// The elements of a weight of a kind once a device has it; floats for what is no table.
    #[must_use]
    pub fn of_kind(kind: WeightKind) -> Self {
        match kind {
            WeightKind::Dense(DenseKind::F16) => Self::F16,
            WeightKind::Dense(DenseKind::Bf16) => Self::Bf16,
            WeightKind::Dense(DenseKind::Int8Rows) => Self::Int8,
            _ => Self::F32,
        }
    }
}

/// Bytes of a vector of four words, which kernels read at once.
pub(crate) const QUAD_BYTES: usize = 16;

/// Vectors of four words of a table's row; that of int8 ends with one for its scale.
pub(crate) fn row_quads(table: Table, columns: usize) -> usize {
    match table {
        Table::F32 => columns.div_ceil(4),
        Table::F16 | Table::Bf16 => columns.div_ceil(8),
        Table::Int8 => columns.div_ceil(16) + 1,
    }
}

/// Bytes that are brought to the device at once.
const PIECE_BYTES: usize = 1 << 22;

fn dense<E: Executor>(
    executor: &mut E,
    spec: WeightSpec,
    matrix: &DenseMatrix,
) -> Result<GpuWeight<E::Buffer>, OpsError> {
    let columns = matrix.columns();
    let table = Table::of(matrix);
    let stride = row_quads(table, columns);
    let row_bytes = QUAD_BYTES * stride;
    let most = usize::try_from(executor.max_buffer_bytes()).unwrap_or(usize::MAX);
    let part_rows = (most / row_bytes).max(1);
    let piece_rows = (PIECE_BYTES / row_bytes).max(1);
    let mut parts = vec![];
    let mut piece = vec![0u8; piece_rows.min(matrix.rows()) * row_bytes];
    for first in (0..matrix.rows()).step_by(part_rows) {
        let rows = part_rows.min(matrix.rows() - first);
        let buffer = executor.create_buffer("a table", (rows * row_bytes) as u64)?;
        for start in (0..rows).step_by(piece_rows) {
            let count = piece_rows.min(rows - start);
            let piece = &mut piece[..count * row_bytes];
            for (row, out) in piece.chunks_exact_mut(row_bytes).enumerate() {
                write_row(matrix, first + start + row, out);
            }
            executor.write(&buffer, (start * row_bytes) as u64, piece)?;
        }
        parts.push(WeightSlice { buffer, first, rows });
    }
    Ok(GpuWeight { spec, form: WeightFormat::Dense { table, stride }, parts })
}

/// One row as a device has it, padded with zeros.
fn write_row(matrix: &DenseMatrix, row: usize, out: &mut [u8]) {
    let columns = matrix.columns();
    let range = row * columns..(row + 1) * columns;
    let copy = |out: &mut [u8], bytes: &[u8]| {
        out[..bytes.len()].copy_from_slice(bytes);
        out[bytes.len()..].fill(0);
    };
    match matrix.values() {
        DenseValues::F32(values) => copy(out, cast_slice(&values[range])),
        DenseValues::F16(values) => copy(out, cast_slice(&values[range])),
        DenseValues::Bf16(values) => copy(out, cast_slice(&values[range])),
        DenseValues::Int8Rows { codes, scales } => {
            let (quads, last) = out.split_at_mut(out.len() - QUAD_BYTES);
            copy(quads, cast_slice(&codes[range]));
            copy(last, &scales[row].to_ne_bytes());
        }
        DenseValues::Ternary(_) => {
            let mut widened = vec![0.0; columns];
            matrix.widen_row(row, &mut widened);
            copy(out, cast_slice(&widened));
        }
    }
}
