//! `ternary_matmul`: a linear layer of ternary weights over int8 activations.
//!
//! With `dot` the exact sum of [`ternary_dot`], `t` the activation
//! scale of the row and `w` the weight scale of the matrix or of its row:
//!
//! ```text
//! y = (dot as f32) × (t × w)              then + bias, then + residual
//! y = ((dot as f32) × t + bias) × w       where the bias enters before the scale
//! ```
//!
//! With a scale for each group of columns, groups ascending:
//!
//! ```text
//! acc = +0;  acc += (dot_g as f32) × w_g;  y = acc × t
//! ```

use crate::{
    op::Agreement,
    ternary::{Scales, TernaryMatrix},
    ternary_dot::{ternary_dot, ternary_dot_range},
};

/// The sum is exact everywhere; the scaling is a few float operations.
pub const AGREEMENT: Agreement = Agreement::ExactOnCpu { gpu_ulp: 2 };

/// A quantized row of activations.
#[derive(Clone, Copy, Debug)]
pub struct QuantizedRow<'a> {
    /// `[padded_columns]`
    pub codes: &'a [i8],
    /// `t`
    pub scale: f32,
}

/// A bias of one output.
#[derive(Clone, Copy, Debug)]
pub struct OutputBias {
    /// Its value.
    pub value: f32,
    /// Whether it enters before the weight scale.
    pub before_scale: bool,
}

/// One output of the layer, without residual.
///
/// # Panics
///
/// If `row` is out of range, `x` is not as long as the matrix's padded rows, or a bias before
/// the scale meets column groups, which have no one scale. A checked plan has neither.
#[must_use]
pub fn ternary_matmul_output(
    matrix: &TernaryMatrix,
    row: usize,
    x: QuantizedRow<'_>,
    bias: Option<OutputBias>,
) -> f32 {
    let scaled = |weight_scale: f32| {
        let dot = to_f32(ternary_dot(matrix.row(row), x.codes));
        match bias {
            Some(OutputBias { value, before_scale: true }) => {
                (dot * x.scale + value) * weight_scale
            }
            _ => dot * (x.scale * weight_scale),
        }
    };
    let y = match matrix.scales() {
        Scales::Tensor(scale) => scaled(*scale),
        Scales::Rows(scales) => scaled(scales[row]),
        Scales::ColumnGroups { columns, .. } => {
            let before = bias.is_some_and(|bias| bias.before_scale);
            assert!(!before, "a bias before the scale needs one scale an output");
            let mut acc = 0.0;
            for start in (0..matrix.columns()).step_by(*columns) {
                let group = start..matrix.columns().min(start + columns);
                let dot = ternary_dot_range(matrix.row(row), x.codes, group);
                acc += to_f32(dot) * matrix.scale(row, start);
            }
            acc * x.scale
        }
    };
    match bias {
        Some(OutputBias { value, before_scale: false }) => y + value,
        _ => y,
    }
}

#[expect(clippy::cast_precision_loss, reason = "|dot| < 2^24 up to MAX_COLUMNS")]
fn to_f32(dot: i32) -> f32 {
    dot as f32
}
