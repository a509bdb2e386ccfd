//! Weights as they are kept here, to and from numbers and bytes.

use std::borrow::Cow;

use setun_ops::{
    DenseMatrix, OpsError, TernaryMatrix, Usage, WeightData,
    dense::DenseValues,
    image::{Adopted, ImageFields, MappedWeight, WeightBytes},
    rope_append::RopeTable,
    ternary::Scales,
    weight::{ScaleKind, WeightKind},
};

use crate::{
    screen::Screen,
    step::{CpuWeight, WeightStorage},
    ternary_columns::TernaryColumns,
};

const TERNARY: u64 = 0;
const COLUMNS: u64 = 1;
const DENSE: u64 = 2;
const VECTOR: u64 = 3;
const ROPE: u64 = 4;

/// What a weight is kept as.
pub(crate) fn image(weight: &CpuWeight) -> WeightBytes<'_> {
    let mut image = WeightBytes { numbers: vec![], parts: vec![] };
    match weight.storage() {
        WeightStorage::Columns(matrix) => {
            let (codes, scales) = (matrix.codes(), matrix.scales());
            image.numbers = vec![COLUMNS, matrix.outputs() as u64, matrix.columns() as u64];
            push_matrix(&mut image, codes, scales);
        }
        WeightStorage::Plain { data, screen } => match data {
            WeightData::Ternary(matrix) => push_ternary(&mut image, matrix),
            WeightData::Vector(values) => {
                image.numbers = vec![VECTOR];
                image.parts = vec![bytes(values)];
            }
            WeightData::Rope(table) => {
                let half = table.cos().len() / table.positions().max(1);
                image.numbers = vec![ROPE, half as u64];
                image.parts = vec![bytes(table.cos()), bytes(table.sin())];
            }
            WeightData::Dense(table) => {
                push_dense(&mut image, table);
                // Whether there is one is known once a plan has requested it.
                image
                    .numbers
                    .push(screen.get().map_or(0, |screen| 1 + u64::from(screen.is_some())));
                // That of a ternary table is made again from its scales.
                let is_kept = !matches!(table.values(), DenseValues::Ternary(_));
                if let (true, Some(Some(screen))) = (is_kept, screen.get()) {
                    screen.push_image(&mut image);
                }
            }
        },
    }
    image
}

/// A weight of an image. Its values are trusted, its sizes are not.
pub(crate) fn adopt(image: MappedWeight, usage: Usage) -> Result<Adopted<CpuWeight>, OpsError> {
    let mut fields = ImageFields::from(image);
    let kind = fields.number()?;
    let weight = match kind {
        COLUMNS if usage == Usage::SparseInput => CpuWeight::columns(take_columns(&mut fields)?),
        TERNARY => CpuWeight::plain(WeightData::Ternary(take_ternary(&mut fields)?)),
        VECTOR => CpuWeight::plain(WeightData::Vector(fields.floats()?)),
        ROPE => {
            let half = fields.size()?;
            let table = RopeTable::from_values(half, fields.floats()?, fields.floats()?)?;
            CpuWeight::plain(WeightData::Rope(table))
        }
        DENSE => take_dense(&mut fields)?,
        _ => return Err(OpsError::Image { what: "its kind is unknown, or for another usage" }),
    };
    fields.end()?;
    let spec = weight.spec();
    let bytes = match weight.storage() {
        WeightStorage::Plain { data, .. } => data.bytes(),
        WeightStorage::Columns(matrix) => {
            let kind = WeightKind::Ternary(ScaleKind::of(matrix.scales()));
            usize::try_from(kind.bytes(spec)).unwrap_or(usize::MAX)
        }
    };
    Ok(Adopted { weight, spec, bytes })
}

fn push_ternary<'a>(image: &mut WeightBytes<'a>, matrix: &'a TernaryMatrix) {
    image.numbers.extend([TERNARY, matrix.rows() as u64, matrix.columns() as u64]);
    push_matrix(image, matrix.codes(), matrix.scales());
}

/// Codes, then scales.
fn push_matrix<'a>(image: &mut WeightBytes<'a>, codes: &'a [u8], scales: &'a Scales) {
    let (kind, group, values) = match scales {
        Scales::Tensor(scale) => (0, 0, std::slice::from_ref(scale)),
        Scales::Rows(values) => (1, 0, values.as_slice()),
        Scales::ColumnGroups { columns, values } => (2, *columns as u64, values.as_slice()),
    };
    image.numbers.extend([kind, group]);
    image.parts.extend([codes.into(), bytes(values)]);
}

fn push_dense<'a>(image: &mut WeightBytes<'a>, table: &'a DenseMatrix) {
    image.numbers.extend([DENSE, table.rows() as u64, table.columns() as u64]);
    let (elements, parts) = match table.values() {
        DenseValues::F32(values) => (0, vec![bytes(values)]),
        DenseValues::F16(values) => (1, vec![bytes(values)]),
        DenseValues::Bf16(values) => (2, vec![bytes(values)]),
        DenseValues::Int8Rows { codes, scales } => (3, vec![bytes(codes), bytes(scales)]),
        DenseValues::Ternary(matrix) => {
            image.numbers.push(4);
            return push_ternary(image, matrix);
        }
    };
    image.numbers.push(elements);
    image.parts.extend(parts);
}

fn bytes<T: bytemuck::NoUninit>(values: &[T]) -> Cow<'_, [u8]> {
    bytemuck::cast_slice(values).into()
}

fn take_columns(fields: &mut ImageFields) -> Result<TernaryColumns, OpsError> {
    let (outputs, columns) = (fields.size()?, fields.size()?);
    let scales = take_scale_kind(fields)?;
    TernaryColumns::trusted(outputs, columns, fields.elements()?, scales(fields.floats()?)?)
}

fn take_ternary(fields: &mut ImageFields) -> Result<TernaryMatrix, OpsError> {
    let (rows, columns) = (fields.size()?, fields.size()?);
    let scales = take_scale_kind(fields)?;
    TernaryMatrix::trusted(rows, columns, fields.elements()?, scales(fields.floats()?)?)
}

/// Makes scales of floats, which stand behind the codes.
fn take_scale_kind(
    fields: &mut ImageFields,
) -> Result<impl FnOnce(Vec<f32>) -> Result<Scales, OpsError> + use<>, OpsError> {
    let (kind, columns) = (fields.number()?, fields.size()?);
    Ok(move |values: Vec<f32>| match (kind, values.as_slice()) {
        (0, [scale]) => Ok(Scales::Tensor(*scale)),
        (1, _) => Ok(Scales::Rows(values)),
        (2, _) => Ok(Scales::ColumnGroups { columns, values }),
        _ => Err(OpsError::Image { what: "its scales are of no kind" }),
    })
}

fn take_dense(fields: &mut ImageFields) -> Result<CpuWeight, OpsError> {
    let (rows, columns) = (fields.size()?, fields.size()?);
    let values = match fields.number()? {
        0 => DenseValues::F32(fields.elements()?),
        1 => DenseValues::F16(fields.elements()?),
        2 => DenseValues::Bf16(fields.elements()?),
        3 => DenseValues::Int8Rows { codes: fields.elements()?, scales: fields.floats()? },
        4 if fields.number()? == TERNARY => DenseValues::Ternary(take_ternary(fields)?),
        _ => return Err(OpsError::Image { what: "its elements are of no type" }),
    };
    let table = DenseMatrix::trusted(rows, columns, values)?;
    let screen = match (fields.number()?, table.values()) {
        (0, _) => return Ok(CpuWeight::plain(WeightData::Dense(table))),
        (1, _) => None,
        (2, DenseValues::Ternary(matrix)) => Screen::ternary(matrix),
        (2, DenseValues::F32(_) | DenseValues::F16(_) | DenseValues::Bf16(_)) => {
            Some(Screen::take_image(fields, &table)?)
        }
        _ => return Err(OpsError::Image { what: "its screen is of no kind" }),
    };
    Ok(CpuWeight::table(table, screen))
}

#[cfg(test)]
mod tests;
