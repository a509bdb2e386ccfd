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
//! Weights or activations may have a scale for each group of columns. A row is then cut into runs of
//! [`common_group`] columns, and `t_g` and `w_g` are the scales of the groups that hold run `g`, ascending:
//!
//! ```text
//! acc = +0;  acc += (dot_g as f32) × (t_g × w_g);  y = acc
//! ```

use crate::{
    op::Agreement,
    ternary::{BLOCK_COLUMNS, PLANE_COLUMNS, Scales, TernaryMatrix},
    ternary_dot::{ternary_dot, ternary_dot_range},
};

/// The sum is exact everywhere; the scaling is a few float operations.
pub const AGREEMENT: Agreement = Agreement::ExactOnCpu { gpu_ulp: 2 };

/// A quantized row of activations.
#[derive(Clone, Copy, Debug)]
pub struct QuantizedRow<'a> {
    /// `[padded_columns]`
    pub codes: &'a [i8],
    /// `t`, or `t_g` of each group.
    pub scales: &'a [f32],
    /// Columns of a group; none where the row has one scale.
    pub group: Option<usize>,
}

/// A bias of one output.
#[derive(Clone, Copy, Debug)]
pub struct OutputBias {
    /// Its value.
    pub value: f32,
    /// Whether it enters before the weight scale.
    pub before_scale: bool,
}

/// Columns of a product's runs, 32, 64 or 128: the most that never lie in two groups, of weights or of
/// activations. None where both have one scale.
#[must_use]
pub fn common_group(x: Option<usize>, scales: &Scales) -> Option<usize> {
    let w = match scales {
        Scales::ColumnGroups { columns, .. } => Some(*columns),
        Scales::Tensor(_) | Scales::Rows(_) => None,
    };
    common_run(x, w)
}

/// [`common_group`] of activations and weights with groups of these columns.
#[must_use]
pub fn common_run(x: Option<usize>, w: Option<usize>) -> Option<usize> {
    let fits = |run: usize| [x, w].into_iter().flatten().all(|group| group.is_multiple_of(run));
    let runs = [BLOCK_COLUMNS, 2 * PLANE_COLUMNS, PLANE_COLUMNS];
    x.or(w).and_then(|_| runs.into_iter().find(|&run| fits(run)))
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
    let y = if let Some(run) = common_group(x.group, matrix.scales()) {
        let before = bias.is_some_and(|bias| bias.before_scale);
        assert!(!before, "a bias before the scale needs one scale an output");
        let mut acc = 0.0;
        for start in (0..matrix.columns()).step_by(run) {
            let columns = start..matrix.columns().min(start + run);
            let dot = ternary_dot_range(matrix.row(row), x.codes, columns);
            let t = x.scales[x.group.map_or(0, |group| start / group)];
            acc += to_f32(dot) * (t * matrix.scale(row, start));
        }
        acc
    } else {
        let (t, w) = (x.scales[0], matrix.scale(row, 0));
        let dot = to_f32(ternary_dot(matrix.row(row), x.codes));
        match bias {
            Some(OutputBias { value, before_scale: true }) => (dot * t + value) * w,
            _ => dot * (t * w),
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
