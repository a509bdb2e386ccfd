//! Memory that a weight takes on the CPU, known before it is loaded.

use setun_ops::{
    Usage, WeightSpec,
    screen_dot::row_bytes,
    weight::{ScaleKind, WeightKind},
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

/// Bytes of the screen beside a table of floats `[rows, columns]`.
#[must_use]
pub fn screen_bytes(rows: usize, columns: usize) -> u64 {
    let codes = rows as u64 * row_bytes(rows, columns) as u64;
    codes + (rows.div_ceil(BLOCK_TOKENS) * BOUNDS_BYTES) as u64
}
