//! Weights of a plan: their specifications, and their values on the host.

use std::fmt;

use crate::{
    dense::{DenseMatrix, DenseValues},
    rope_append::RopeTable,
    ternary::{Scales, TernaryMatrix, row_bytes},
};

/// Kind and shape of a weight that a plan names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WeightSpec {
    /// A [`TernaryMatrix`] `[rows, columns]`.
    Ternary {
        /// Outputs.
        rows: usize,
        /// Inputs.
        columns: usize,
        /// Whether its scales are by column group.
        grouped: bool,
    },
    /// A [`DenseMatrix`] `[rows, columns]`, of any element type.
    Dense {
        /// Tokens.
        rows: usize,
        /// Hidden width.
        columns: usize,
    },
    /// Gains or biases `[len]`.
    Vector {
        /// Number of elements.
        len: usize,
    },
    /// A [`RopeTable`] for positions `0..positions`.
    Rope {
        /// Number of positions.
        positions: usize,
        /// Width of the heads it rotates.
        head_dim: usize,
    },
}

impl fmt::Display for WeightSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ternary { rows, columns, grouped } => {
                let groups = if *grouped { " with column groups" } else { "" };
                write!(f, "a ternary matrix [{rows}, {columns}]{groups}")
            }
            Self::Dense { rows, columns } => write!(f, "a dense matrix [{rows}, {columns}]"),
            Self::Vector { len } => write!(f, "a vector [{len}]"),
            Self::Rope { positions, head_dim } => {
                write!(f, "a RoPE table of {positions} positions for heads of {head_dim}")
            }
        }
    }
}

/// How the values of a weight are stored: what is known of it before they are there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WeightKind {
    /// Of a [`TernaryMatrix`].
    Ternary(ScaleKind),
    /// Of a [`DenseMatrix`].
    Dense(DenseKind),
    /// Gains, biases, cosines and sines.
    Floats,
}

/// How many scales a ternary matrix has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ScaleKind {
    /// See [`Scales::Tensor`].
    Tensor,
    /// See [`Scales::Rows`].
    Rows,
    /// See [`Scales::ColumnGroups`]: of this many columns each.
    ColumnGroups(usize),
}

/// What the elements of a table are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DenseKind {
    /// See [`DenseValues::F32`].
    F32,
    /// See [`DenseValues::F16`].
    F16,
    /// See [`DenseValues::Bf16`].
    Bf16,
    /// See [`DenseValues::Int8Rows`].
    Int8Rows,
    /// See [`DenseValues::Ternary`].
    Ternary(ScaleKind),
}

impl WeightKind {
    /// Bytes of the values of a weight of this kind and that shape, as [`WeightData::bytes`]
    /// counts them.
    #[must_use]
    pub fn bytes(self, spec: WeightSpec) -> u64 {
        let of = |rows: usize, row: usize| rows as u64 * row as u64;
        match spec {
            WeightSpec::Ternary { rows, columns, .. } => match self {
                Self::Ternary(scales) => of(rows, row_bytes(columns)) + scales.bytes(rows, columns),
                _ => of(rows, row_bytes(columns)),
            },
            WeightSpec::Dense { rows, columns } => match self {
                Self::Dense(DenseKind::F16 | DenseKind::Bf16) => of(rows, 2 * columns),
                Self::Dense(DenseKind::Int8Rows) => of(rows, columns + 4),
                Self::Dense(DenseKind::Ternary(scales)) => {
                    of(rows, row_bytes(columns)) + scales.bytes(rows, columns)
                }
                _ => of(rows, 4 * columns),
            },
            WeightSpec::Vector { len } => of(len, 4),
            WeightSpec::Rope { positions, head_dim } => of(positions, 4 * head_dim),
        }
    }
}

impl ScaleKind {
    /// Bytes of the scales of a matrix `[rows, columns]`.
    #[must_use]
    pub fn bytes(self, rows: usize, columns: usize) -> u64 {
        match self {
            Self::Tensor => 4,
            Self::Rows => 4 * rows as u64,
            Self::ColumnGroups(group) => 4 * rows as u64 * columns.div_ceil(group.max(1)) as u64,
        }
    }

    /// The kind of some scales.
    #[must_use]
    pub fn of(scales: &Scales) -> Self {
        match scales {
            Scales::Tensor(_) => Self::Tensor,
            Scales::Rows(_) => Self::Rows,
            Scales::ColumnGroups { columns, .. } => Self::ColumnGroups(*columns),
        }
    }
}

impl DenseKind {
    /// The kind of a table's elements.
    #[must_use]
    pub fn of(values: &DenseValues) -> Self {
        match values {
            DenseValues::F32(_) => Self::F32,
            DenseValues::F16(_) => Self::F16,
            DenseValues::Bf16(_) => Self::Bf16,
            DenseValues::Int8Rows { .. } => Self::Int8Rows,
            DenseValues::Ternary(matrix) => Self::Ternary(ScaleKind::of(matrix.scales())),
        }
    }
}

/// What a weight is for, as far as it matters for the form in which a backend keeps it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Usage {
    /// Nothing in particular.
    #[default]
    General,
    /// A ternary matrix of [`Op::TernaryMatmul`](crate::Op::TernaryMatmul) most of whose
    /// activations are zero, as those are that pass a gate.
    SparseInput,
    /// The table of the head, and perhaps of the embedding too.
    Head,
}

/// The value of a weight, in host memory, on its way into a backend.
#[derive(Clone, Debug, PartialEq)]
pub enum WeightData {
    /// See [`WeightSpec::Ternary`].
    Ternary(TernaryMatrix),
    /// See [`WeightSpec::Dense`].
    Dense(DenseMatrix),
    /// See [`WeightSpec::Vector`].
    Vector(Vec<f32>),
    /// See [`WeightSpec::Rope`].
    Rope(RopeTable),
}

impl WeightData {
    /// Kind and shape of this value.
    #[must_use]
    pub fn spec(&self) -> WeightSpec {
        match self {
            Self::Ternary(matrix) => WeightSpec::Ternary {
                rows: matrix.rows(),
                columns: matrix.columns(),
                grouped: matches!(matrix.scales(), Scales::ColumnGroups { .. }),
            },
            Self::Dense(matrix) => {
                WeightSpec::Dense { rows: matrix.rows(), columns: matrix.columns() }
            }
            Self::Vector(values) => WeightSpec::Vector { len: values.len() },
            Self::Rope(table) => {
                WeightSpec::Rope { positions: table.positions(), head_dim: table.head_dim() }
            }
        }
    }

    /// How this value is stored.
    #[must_use]
    pub fn kind(&self) -> WeightKind {
        match self {
            Self::Ternary(matrix) => WeightKind::Ternary(ScaleKind::of(matrix.scales())),
            Self::Dense(matrix) => WeightKind::Dense(DenseKind::of(matrix.values())),
            Self::Vector(_) | Self::Rope(_) => WeightKind::Floats,
        }
    }

    /// Bytes of the value.
    #[must_use]
    pub fn bytes(&self) -> usize {
        match self {
            Self::Ternary(matrix) => matrix.bytes(),
            Self::Dense(matrix) => matrix.bytes(),
            Self::Vector(values) => size_of_val(values.as_slice()),
            Self::Rope(table) => 2 * size_of_val(table.cos()),
        }
    }
}
