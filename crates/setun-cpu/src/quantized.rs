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
    /// Columns of the shortest run that a product by groups has of it.
    pub(crate) run: Option<usize>,
    /// What those runs have, `[rows, runs_of_row]`.
    pub(crate) runs: Aligned<RowRun>,
}

/// What a row has in a run of columns. Zeros behind the last column.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct RowRun {
    /// The scale of its codes.
    pub(crate) t: f32,
    /// Their sum.
    pub(crate) sum: i32,
}

impl RowRun {
    /// Of runs of a group side by side, as one.
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

    /// Makes room for what runs of this many columns have.
    pub(crate) fn add_run(&mut self, run: usize) -> Result<(), OpsError> {
        if self.run.is_none_or(|shortest| run < shortest) {
            self.run = Some(run);
            self.runs = zeroed(self.sums.len() * self.runs_of_row(), "a buffer")?;
        }
        Ok(())
    }

    /// How many runs a row has, padding included; one that nobody needs where there are none.
    pub(crate) fn runs_of_row(&self) -> usize {
        self.run.map_or(1, |run| (padded_columns(self.width) / run).max(1))
    }

    /// Columns of a run of [`runs`](Self::runs).
    pub(crate) fn shortest_run(&self) -> usize {
        self.run.unwrap_or(BLOCK_COLUMNS)
    }

    /// What a row has in some runs of [`shortest_run`](Self::shortest_run) columns.
    pub(crate) fn runs(&self, row: usize, runs: Range<usize>) -> &[RowRun] {
        &self.runs[row * self.runs_of_row()..][runs]
    }

    /// The codes of a row, padding included.
    pub(crate) fn row(&self, row: usize) -> &[i8] {
        let padded = padded_columns(self.width);
        &self.codes[row * padded..][..padded]
    }
}
