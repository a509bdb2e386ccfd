//! Quantized buffers.

use std::ops::Range;

use setun_ops::{
    OpsError,
    aligned::Aligned,
    quantize::scales_of_row,
    ternary::{PLANE_COLUMNS, padded_columns},
};

use crate::memory::zeroed;

/// A quantized buffer.
#[derive(Debug, Default)]
pub(crate) struct Quantized {
    /// Without padding.
    pub(crate) width: usize,
    /// Columns that share a scale; none where all of a row do.
    pub(crate) group: Option<usize>,
    /// `[rows, padded_columns(width)]`
    pub(crate) codes: Aligned<i8>,
    /// `[rows, scales_of_row]`
    pub(crate) scales: Aligned<f32>,
    /// Sums of the codes, `[rows]`.
    pub(crate) sums: Aligned<i32>,
    /// Those of 32 columns each, `[rows, planes]`, if a product by groups needs them.
    pub(crate) plane_sums: Aligned<i32>,
    pub(crate) has_plane_sums: bool,
}

impl Quantized {
    pub(crate) fn zeroed(
        rows: usize,
        width: usize,
        group: Option<usize>,
    ) -> Result<Self, OpsError> {
        let padded = padded_columns(width);
        Ok(Self {
            width,
            group,
            codes: zeroed(rows * padded, "a buffer")?,
            scales: zeroed(rows * scales_of_row(width, group), "a buffer")?,
            sums: zeroed(rows, "a buffer")?,
            plane_sums: zeroed(rows * padded / PLANE_COLUMNS, "a buffer")?,
            has_plane_sums: false,
        })
    }

    /// The scale of a column of a row.
    pub(crate) fn scale(&self, row: usize, column: usize) -> f32 {
        let groups = scales_of_row(self.width, self.group);
        self.scales[row * groups + self.group.map_or(0, |group| column / group)]
    }

    /// The scales of a row.
    pub(crate) fn scales_of_row(&self, row: usize) -> &[f32] {
        let groups = scales_of_row(self.width, self.group);
        &self.scales[row * groups..][..groups]
    }

    /// The sum of a run of whole planes of a row.
    pub(crate) fn run_sum(&self, row: usize, planes: Range<usize>) -> i32 {
        self.plane_sums_of_row(row)[planes].iter().sum()
    }

    /// The sums of the planes of a row.
    pub(crate) fn plane_sums_of_row(&self, row: usize) -> &[i32] {
        let of_row = padded_columns(self.width) / PLANE_COLUMNS;
        &self.plane_sums[row * of_row..][..of_row]
    }

    /// The codes of a row, padding included.
    pub(crate) fn row(&self, row: usize) -> &[i8] {
        let padded = padded_columns(self.width);
        &self.codes[row * padded..][..padded]
    }
}
