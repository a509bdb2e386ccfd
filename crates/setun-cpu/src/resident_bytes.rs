//! Memory that a weight takes on the CPU, known before it is loaded.

use setun_ops::{
    Usage, WeightSpec,
    screen_dot::SCREEN_COLUMNS,
    weight::{DenseKind, ScaleKind, WeightKind},
};

use crate::{
    screen::{BLOCK_TOKENS, BOUNDS_BYTES},
    ternary_columns::column_bytes,
};

/// Bytes of a weight in the form in which [`CpuBackend`](crate::CpuBackend) keeps it.
#[must_use]
pub fn weight_bytes(spec: WeightSpec, kind: WeightKind, usage: Usage) -> u64 {
    match (spec, kind, usage) {
        (
            WeightSpec::Ternary { rows, columns, .. },
            WeightKind::Ternary(scales @ (ScaleKind::Tensor | ScaleKind::Rows)),
            Usage::SparseInput,
        ) => scales.bytes(rows, columns) + columns as u64 * column_bytes(rows) as u64,
        _ => kind.bytes(spec),
    }
}

/// Bytes of the screen of a table `[rows, columns]`, whose elements are floats or ternary codes.
#[must_use]
pub fn screen_bytes(rows: usize, columns: usize, kind: WeightKind) -> u64 {
    if matches!(kind, WeightKind::Dense(DenseKind::Ternary(_))) {
        return 4 * rows as u64;
    }
    let codes = rows as u64 * columns.next_multiple_of(SCREEN_COLUMNS) as u64;
    codes + (rows.div_ceil(BLOCK_TOKENS) * BOUNDS_BYTES) as u64
}
