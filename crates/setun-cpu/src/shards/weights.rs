//! Weights on their way to workers: some rows of a matrix, or a whole vector.

use std::ops::Range;

use half::{bf16, f16};
use setun_ops::{
    DenseMatrix, OpsError, TernaryMatrix, Usage, WeightData,
    aligned::{Aligned, NoMemory},
    dense::DenseValues,
    ternary::{Scales, row_bytes},
};

use super::{
    MIN_ROWS, Shards, SharedWeight,
    message::{Message, WEIGHT, Words},
    rows_of,
};

/// Kinds of weights in messages.
const VECTOR: u32 = 0;
const TERNARY: u32 = 1;
const F32: u32 = 2;
const F16: u32 = 3;
const BF16: u32 = 4;
const INT8_ROWS: u32 = 5;
const TERNARY_TABLE: u32 = 6;

/// Columns that share a scale where a matrix has no column groups.
const TENSOR: usize = 0;
const ROWS: usize = u32::MAX as usize;

impl Shards {
    /// Gives workers their rows of a weight, and says what is left for the leader; none of what stays whole
    /// with the leader alone.
    pub(crate) fn upload(
        &mut self,
        weight: &WeightData,
        usage: Usage,
    ) -> Result<Option<SharedWeight>, OpsError> {
        let parts = self.parts();
        let rows = match weight {
            WeightData::Ternary(matrix) => matrix.rows(),
            WeightData::Dense(table) if usage == Usage::Head => table.rows(),
            WeightData::Vector(_) => 0,
            _ => return Ok(None),
        };
        let is_vector = matches!(weight, WeightData::Vector(_));
        if !is_vector && rows < parts * MIN_ROWS {
            return Ok(None);
        }
        let id = self.weights;
        self.weights += 1;
        for worker in 0..self.link.workers() {
            let rows = rows_of(rows, parts, worker + 1);
            let mut head = Words::new(WEIGHT);
            head.push_size(rows.start);
            head.push(u32::from(usage == Usage::SparseInput));
            let [values, scales] = parts_of(weight, rows, &mut head);
            self.link.send(worker, &[head.finish(), values, scales])?;
        }
        Ok(Some(SharedWeight { id, rows, own: rows_of(rows, parts, 0).end }))
    }
}

/// Writes the kind and shape of some rows to a message, and gives their values and scales.
fn parts_of<'a>(weight: &'a WeightData, rows: Range<usize>, head: &mut Words) -> [&'a [u8]; 2] {
    let (kind, columns) = match weight {
        WeightData::Ternary(matrix) => (TERNARY, matrix.columns()),
        WeightData::Dense(table) => (table_kind(table), table.columns()),
        WeightData::Vector(values) => {
            for word in [VECTOR, 0, 0, 0] {
                head.push(word);
            }
            return [bytemuck::cast_slice(values), &[]];
        }
        WeightData::Rope(_) => (VECTOR, 0), // is never sent
    };
    head.push(kind);
    head.push_size(rows.len());
    head.push_size(columns);
    let elements = rows.start * columns..rows.end * columns;
    match weight {
        WeightData::Ternary(matrix) => ternary_parts(matrix, rows, head),
        WeightData::Dense(table) => {
            if let DenseValues::Ternary(matrix) = table.values() {
                return ternary_parts(matrix, rows, head);
            }
            head.push(0);
            match table.values() {
                DenseValues::F32(values) => [bytemuck::cast_slice(&values[elements]), &[]],
                DenseValues::F16(values) => [bytemuck::cast_slice(&values[elements]), &[]],
                DenseValues::Bf16(values) => [bytemuck::cast_slice(&values[elements]), &[]],
                DenseValues::Int8Rows { codes, scales } => {
                    [bytemuck::cast_slice(&codes[elements]), bytemuck::cast_slice(&scales[rows])]
                }
                DenseValues::Ternary(_) => [&[], &[]],
            }
        }
        _ => [&[], &[]],
    }
}

fn table_kind(table: &DenseMatrix) -> u32 {
    match table.values() {
        DenseValues::F32(_) => F32,
        DenseValues::F16(_) => F16,
        DenseValues::Bf16(_) => BF16,
        DenseValues::Int8Rows { .. } => INT8_ROWS,
        DenseValues::Ternary(_) => TERNARY_TABLE,
    }
}

fn ternary_parts<'a>(
    matrix: &'a TernaryMatrix,
    rows: Range<usize>,
    head: &mut Words,
) -> [&'a [u8]; 2] {
    let (group, scales) = match matrix.scales() {
        Scales::Tensor(scale) => (TENSOR, std::slice::from_ref(scale)),
        Scales::Rows(values) => (ROWS, &values[rows.clone()]),
        Scales::ColumnGroups { columns, values } => {
            let groups = matrix.columns().div_ceil(*columns);
            (*columns, &values[rows.start * groups..rows.end * groups])
        }
    };
    head.push_size(group);
    let bytes = row_bytes(matrix.columns());
    let codes = &matrix.codes()[rows.start * bytes..rows.end * bytes];
    [codes, bytemuck::cast_slice(scales)]
}

/// A weight from its message, its usage, and which row of the whole is its first.
pub(crate) fn weight_of(message: &mut Message<'_>) -> Result<(WeightData, Usage, usize), OpsError> {
    let first = message.size()?;
    let usage = if message.word()? == 1 { Usage::SparseInput } else { Usage::General };
    let (kind, rows, columns) = (message.word()?, message.size()?, message.size()?);
    let (group, bytes) = (message.size()?, message.bytes);
    let weight = match kind {
        VECTOR => WeightData::Vector(bytemuck::pod_collect_to_vec(bytes)),
        TERNARY => WeightData::Ternary(ternary_of(rows, columns, group, bytes)?),
        _ => {
            let values = match kind {
                F32 => DenseValues::F32(values_of::<f32>(bytes)?),
                F16 => DenseValues::F16(values_of::<f16>(bytes)?),
                BF16 => DenseValues::Bf16(values_of::<bf16>(bytes)?),
                TERNARY_TABLE => DenseValues::Ternary(ternary_of(rows, columns, group, bytes)?),
                _ => {
                    let (codes, scales) = split(bytes, rows.saturating_mul(columns))?;
                    let scales = bytemuck::pod_collect_to_vec(scales);
                    DenseValues::Int8Rows { codes: values_of(codes)?, scales }
                }
            };
            WeightData::Dense(DenseMatrix::new(rows, columns, values)?)
        }
    };
    Ok((weight, usage, first))
}

fn ternary_of(
    rows: usize,
    columns: usize,
    group: usize,
    bytes: &[u8],
) -> Result<TernaryMatrix, OpsError> {
    let (codes, scales) = split(bytes, rows.saturating_mul(row_bytes(columns)))?;
    let values: Vec<f32> = bytemuck::pod_collect_to_vec(scales);
    let scales = match group {
        TENSOR => Scales::Tensor(values.first().copied().unwrap_or(f32::NAN)),
        ROWS => Scales::Rows(values),
        columns => Scales::ColumnGroups { columns, values },
    };
    TernaryMatrix::new(rows, columns, values_of::<u8>(codes)?, scales)
}

fn split(bytes: &[u8], at: usize) -> Result<(&[u8], &[u8]), OpsError> {
    let what = "bytes of a weight";
    let found = bytes.len();
    bytes.split_at_checked(at).ok_or(OpsError::Length { what, expected: at, found })
}

fn values_of<T: bytemuck::Pod + Default>(bytes: &[u8]) -> Result<Aligned<T>, OpsError> {
    let no_memory = |NoMemory { bytes }| OpsError::OutOfMemory { what: "a shard", bytes };
    let len = bytes.len() / size_of::<T>();
    let mut values = Aligned::filled(T::default(), len).map_err(no_memory)?;
    bytemuck::cast_slice_mut::<T, u8>(&mut values).copy_from_slice(&bytes[..len * size_of::<T>()]);
    Ok(values)
}
