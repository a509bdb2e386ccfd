//! A model on its way to be written in another format.

use setun_ops::{ternary::TernaryMatrix, weight::ScaleKind};

use crate::{config::ModelConfig, dtype::Dtype, files::Files, tensor::Tensor};

/// All of a model but the values of its tensors.
#[derive(Clone, Debug)]
pub struct Outline {
    /// Its configuration.
    pub config: ModelConfig,
    /// The small files of its Hugging Face folder.
    pub files: Files,
    /// Its tensors, in the order in which a forward pass needs them.
    pub tensors: Vec<OutlineTensor>,
}

/// A tensor of an [`Outline`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OutlineTensor {
    /// Name in Hugging Face's layout, with `.weight` or `.bias`. The scales of a linear layer have
    /// none: they are with its weight.
    pub name: String,
    /// Shape; the last dimension is contiguous.
    pub shape: Vec<usize>,
    /// What it is.
    pub kind: OutlineKind,
}

/// What a tensor of an [`Outline`] is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OutlineKind {
    /// The ternary matrix of a linear layer, with this many scales.
    Ternary(ScaleKind),
    /// A table, a gain or a bias, of this type: `F32`, `F16` or `BF16`.
    Floats(Dtype),
    /// A ternary table with this many scales, whose elements are exact in floats of this type.
    Table {
        /// What its scales are for.
        scales: ScaleKind,
        /// `F32`, `F16` or `BF16`.
        floats: Dtype,
    },
}

/// The values of an [`OutlineTensor`].
#[derive(Clone, Debug, PartialEq)]
pub enum Content {
    /// Codes, and scales that multiply.
    Ternary(TernaryMatrix),
    /// Floats as they were stored.
    Floats(Tensor),
}

impl Content {
    /// Number of ternary weights.
    #[must_use]
    pub fn ternary_weights(&self) -> u64 {
        match self {
            Self::Ternary(matrix) => matrix.rows() as u64 * matrix.columns() as u64,
            Self::Floats(_) => 0,
        }
    }
}

/// Where the bytes of a file's tensor go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TensorLocation {
    /// Name of the [`OutlineTensor`].
    pub name: String,
    /// Its bytes in the file.
    pub range: std::ops::Range<u64>,
}
