//! Sums over columns, which each member of the team adds up by itself.

use setun_ops::{OpsError, aligned::Aligned};

use crate::{column_sums::TILE_SUMS, memory::zeroed, ternary_columns::TernaryColumns};

/// Rows that meet a run of columns while it is in the cache, and that a member claims.
pub(crate) const GROUP_ROWS: usize = 16;

/// Sums over columns of one member.
#[derive(Debug, Default)]
pub(crate) struct MemberSums {
    /// Whether the member has taken part in this operation.
    pub(crate) used: bool,
    pub(crate) values: Aligned<i32>,
}

impl MemberSums {
    /// Makes room for the sums of a layer with this many rows.
    pub(crate) fn grow(&mut self, matrix: &TernaryColumns, rows: usize) -> Result<(), OpsError> {
        let len = rows.min(GROUP_ROWS) * padded_outputs(matrix);
        if self.values.len() < len {
            self.values = zeroed(len, "sums over columns")?;
        }
        Ok(())
    }

    /// This many sums, all zero.
    pub(crate) fn start(&mut self, len: usize) -> &mut [i32] {
        self.used = true;
        let sums = &mut self.values[..len];
        sums.fill(0);
        sums
    }
}

pub(crate) fn padded_outputs(matrix: &TernaryColumns) -> usize {
    matrix.outputs().next_multiple_of(TILE_SUMS)
}
