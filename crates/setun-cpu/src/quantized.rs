//! Quantized buffers.

use std::ops::Range;

use setun_ops::{
    OpsError,
    aligned::Aligned,
    quantize::scales_of_row,
    ternary::{BLOCK_COLUMNS, padded_columns},
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
    /// The number of columns of a run: the fewest that a product by groups needs. None without one.
    pub(crate) run: Option<usize>,
    /// The scale and the sum of each run, `[rows, runs_of_row]`.
    pub(crate) runs: Aligned<RowRun>,
}

/// The scale and the sum of a run of columns of a row. Both are zero for a run of padding.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct RowRun {
    /// The scale of the codes.
    pub(crate) t: f32,
    /// The sum of the codes.
    pub(crate) sum: i32,
}

impl RowRun {
    /// Joins neighbouring runs of one group.
    #[inline(always)]
    pub(crate) fn joined(parts: &[Self]) -> Self {
        match parts {
            [whole] => *whole,
            _ => Self {
                t: parts.first().map_or(0.0, |part| part.t),
                sum: parts.iter().map(|part| part.sum).sum(),
            },
        }
    }
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
            run: None,
            runs: zeroed(rows, "a buffer")?,
        })
    }

    /// Allocates `runs` for runs of this many columns, unless shorter ones are there.
    pub(crate) fn add_run(&mut self, run: usize) -> Result<(), OpsError> {
        if self.run.is_none_or(|shortest| run < shortest) {
            self.run = Some(run);
            self.runs = zeroed(self.sums.len() * self.runs_of_row(), "a buffer")?;
        }
        Ok(())
    }

    /// The number of runs of a row, padding included. It is 1 where no product needs runs.
    pub(crate) fn runs_of_row(&self) -> usize {
        self.run.map_or(1, |run| (padded_columns(self.width) / run).max(1))
    }

    /// The number of columns of a run.
    pub(crate) fn shortest_run(&self) -> usize {
        self.run.unwrap_or(BLOCK_COLUMNS)
    }

    /// The scales and sums of some runs of a row.
    pub(crate) fn runs(&self, row: usize, runs: Range<usize>) -> &[RowRun] {
        &self.runs[row * self.runs_of_row()..][runs]
    }

    /// The codes of a row, padding included.
    pub(crate) fn row(&self, row: usize) -> &[i8] {
        let padded = padded_columns(self.width);
        &self.codes[row * padded..][..padded]
    }
}
