//! Dense tables of any element type: embeddings and heads.

use half::{bf16, f16};

use crate::{
    aligned::{Aligned, NoMemory},
    error::OpsError,
    ternary::TernaryMatrix,
};

/// A matrix `[rows, columns]` as it is stored: nothing is rounded when it is loaded.
#[derive(Clone, Debug, PartialEq)]
pub struct DenseMatrix {
    rows: usize,
    columns: usize,
    values: DenseValues,
}

/// The elements of a [`DenseMatrix`], row by row.
#[derive(Clone, Debug, PartialEq)]
pub enum DenseValues {
    /// `f32`
    F32(Aligned<f32>),
    /// IEEE binary16
    F16(Aligned<f16>),
    /// bfloat16
    Bf16(Aligned<bf16>),
    /// int8 codes and one scale a row.
    Int8Rows {
        /// `[rows, columns]`, −127..=127
        codes: Aligned<i8>,
        /// `[rows]`, finite
        scales: Vec<f32>,
    },
    /// Ternary, with its own scales.
    Ternary(TernaryMatrix),
}

impl DenseMatrix {
    /// # Errors
    ///
    /// If the number of elements is not `rows × columns`, an int8 code is −128, or a scale is not
    /// finite.
    pub fn new(rows: usize, columns: usize, values: DenseValues) -> Result<Self, OpsError> {
        let matrix = Self::trusted(rows, columns, values)?;
        if let DenseValues::Int8Rows { codes, .. } = &matrix.values
            && let Some(index) = codes.iter().position(|&code| code == i8::MIN)
        {
            return Err(OpsError::Int8Code { index });
        }
        Ok(matrix)
    }

    /// As [`new`](Self::new), of int8 codes that were checked when they were written.
    ///
    /// # Errors
    ///
    /// As [`new`](Self::new), but for the codes.
    pub fn trusted(rows: usize, columns: usize, values: DenseValues) -> Result<Self, OpsError> {
        let expected = rows.saturating_mul(columns);
        let found = match &values {
            DenseValues::F32(values) => values.len(),
            DenseValues::F16(values) => values.len(),
            DenseValues::Bf16(values) => values.len(),
            DenseValues::Int8Rows { codes, scales } => {
                if scales.len() != rows {
                    let found = scales.len();
                    return Err(OpsError::Length { what: "row scales", expected: rows, found });
                }
                if let Some(index) = scales.iter().position(|scale| !scale.is_finite()) {
                    let found = scales[index];
                    return Err(OpsError::NotFinite { what: "row scale", index, found });
                }
                codes.len()
            }
            DenseValues::Ternary(matrix) => {
                let what = "columns of a ternary table";
                if matrix.columns() != columns {
                    let found = matrix.columns();
                    return Err(OpsError::Length { what, expected: columns, found });
                }
                matrix.rows() * columns
            }
        };
        if found != expected {
            return Err(OpsError::Length { what: "elements of a dense matrix", expected, found });
        }
        Ok(Self { rows, columns, values })
    }

    /// The int8-row form of a table: per row `a = max(absmax, 1e-5)`, codes
    /// `clamp(round_half_even(x · (127 / a)), ±127)`, scale `a / 127`.
    ///
    /// This changes the values: it is a choice that a user makes by name (`--head int8`).
    ///
    /// # Errors
    ///
    /// If an element is not finite, or there is no memory for the codes.
    pub fn to_int8_rows(&self) -> Result<Self, OpsError> {
        let no_memory = |bytes| OpsError::OutOfMemory { what: "an int8 table", bytes };
        let mut row = vec![0.0; self.columns];
        let codes = Aligned::filled(0, self.rows * self.columns);
        let mut codes = codes.map_err(|NoMemory { bytes }| no_memory(bytes))?;
        let mut scales = vec![];
        let reserved = scales.try_reserve_exact(self.rows);
        reserved.map_err(|_| no_memory(self.rows * size_of::<f32>()))?;
        for (index, codes) in codes.chunks_exact_mut(self.columns.max(1)).enumerate() {
            self.widen_row(index, &mut row);
            let scale = crate::quantize::quantize_row(&row, codes).scale;
            if !scale.is_finite() {
                return Err(OpsError::NotFinite { what: "row of a table", index, found: scale });
            }
            scales.push(scale);
        }
        Self::new(self.rows, self.columns, DenseValues::Int8Rows { codes, scales })
    }

    /// Rows.
    #[must_use]
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Columns.
    #[must_use]
    pub fn columns(&self) -> usize {
        self.columns
    }

    /// The stored elements.
    #[must_use]
    pub fn values(&self) -> &DenseValues {
        &self.values
    }

    /// Bytes of the stored elements, scales included.
    #[must_use]
    pub fn bytes(&self) -> usize {
        match &self.values {
            DenseValues::F32(values) => size_of_val(&**values),
            DenseValues::F16(values) => size_of_val(&**values),
            DenseValues::Bf16(values) => size_of_val(&**values),
            DenseValues::Int8Rows { codes, scales } => codes.len() + size_of_val(scales.as_slice()),
            DenseValues::Ternary(matrix) => matrix.bytes(),
        }
    }

    /// Widens one row to `f32`: exact for floats; `code × scale` for int8 and ternary.
    ///
    /// # Panics
    ///
    /// If `row` is out of range or `out` is not `[columns]`.
    pub fn widen_row(&self, row: usize, out: &mut [f32]) {
        assert_eq!(out.len(), self.columns, "a row of the table");
        let range = row * self.columns..(row + 1) * self.columns;
        match &self.values {
            DenseValues::F32(values) => out.copy_from_slice(&values[range]),
            DenseValues::F16(values) => widen(&values[range], out, f16::to_f32),
            DenseValues::Bf16(values) => widen(&values[range], out, bf16::to_f32),
            DenseValues::Int8Rows { codes, scales } => {
                widen(&codes[range], out, |code| f32::from(code) * scales[row]);
            }
            DenseValues::Ternary(matrix) => {
                for (column, out) in out.iter_mut().enumerate() {
                    *out = f32::from(matrix.weight(row, column)) * matrix.scale(row, column);
                }
            }
        }
    }
}

fn widen<T: Copy>(values: &[T], out: &mut [f32], to_f32: impl Fn(T) -> f32) {
    for (out, &value) in out.iter_mut().zip(values) {
        *out = to_f32(value);
    }
}
