//! A ternary matrix kept column by column, for activations that are mostly zero.

use setun_ops::{
    OpsError, TernaryMatrix, WeightSpec,
    aligned::Aligned,
    ternary::{BLOCK_BYTES, BLOCK_COLUMNS, PLANE_COLUMNS, Scales, row_bytes},
};

#[cfg(not(target_family = "wasm"))]
use setun_ops::ternary::MAX_COLUMNS;

use crate::{
    column_sums::TILE_SUMS,
    memory::zeroed_bytes,
    split::{Claims, Grid},
    team::Team,
};

/// Most outputs of a matrix of an image, far more than models have, so that sizes do not overflow.
#[cfg(not(target_family = "wasm"))]
const MAX_OUTPUTS: usize = 1 << 24;

/// The codes of each column for all outputs, packed as a [`TernaryMatrix`] packs those of a row:
/// the transposed matrix, padded with zeros to whole tiles of sums.
#[derive(Debug)]
pub(crate) struct TernaryColumns {
    outputs: usize,
    columns: usize,
    codes: Aligned<u8>, // [columns, column_bytes(outputs)]
    scales: Scales,
}

impl TernaryColumns {
    /// Whether a matrix can be kept so: sums by column groups are apart from each other.
    pub(crate) fn can_hold(matrix: &TernaryMatrix) -> bool {
        !matches!(matrix.scales(), Scales::ColumnGroups { .. })
    }

    /// Turns a matrix that [can be held](Self::can_hold). Members claim blocks of columns.
    pub(crate) fn new(matrix: &TernaryMatrix, team: &mut Team) -> Result<Self, OpsError> {
        let (outputs, columns) = (matrix.rows(), matrix.columns());
        let bytes = column_bytes(outputs);
        let mut codes = zeroed_bytes(columns * bytes, "a matrix by columns")?;
        let blocks = Claims::new(Grid::new(&mut codes, bytes).tiles(BLOCK_COLUMNS, bytes));
        let turn_blocks = |_| {
            while let Some((block, mut columns)) = blocks.next() {
                for first in (0..outputs).step_by(BLOCK_COLUMNS) {
                    let turned = turn(matrix, first, block);
                    for column in 0..columns.rows().len() {
                        let place = first / BLOCK_COLUMNS * BLOCK_BYTES;
                        let place = &mut columns.row(column)[place..][..BLOCK_BYTES];
                        for (byte, quads) in place.iter_mut().zip(&turned) {
                            *byte = quads[column];
                        }
                    }
                }
            }
        };
        team.step(|crew| crew.run(&turn_blocks));
        codes.settle();
        Ok(Self { outputs, columns, codes, scales: matrix.scales().clone() })
    }

    /// Columns that were turned before, of a matrix that [can be held](Self::can_hold).
    #[cfg(not(target_family = "wasm"))]
    pub(crate) fn trusted(
        outputs: usize,
        columns: usize,
        codes: Aligned<u8>,
        scales: Scales,
    ) -> Result<Self, OpsError> {
        if matches!(scales, Scales::ColumnGroups { .. }) {
            return Err(OpsError::Image { what: "its scales are of no kind for columns" });
        }
        scales.check(outputs, columns)?;
        let bytes = column_bytes(outputs.min(MAX_OUTPUTS)).checked_mul(columns);
        let has_size = (1..=MAX_COLUMNS).contains(&columns) && outputs <= MAX_OUTPUTS;
        if !has_size || bytes != Some(codes.len()) {
            return Err(OpsError::Image { what: "its columns are of another size" });
        }
        Ok(Self { outputs, columns, codes, scales })
    }

    /// All packed codes, `[columns, column_bytes(outputs)]`.
    #[cfg(not(target_family = "wasm"))]
    pub(crate) fn codes(&self) -> &[u8] {
        &self.codes
    }

    pub(crate) fn outputs(&self) -> usize {
        self.outputs
    }

    pub(crate) fn columns(&self) -> usize {
        self.columns
    }

    pub(crate) fn scales(&self) -> &Scales {
        &self.scales
    }

    /// Packed codes of one column, `[column_bytes(outputs)]`.
    pub(crate) fn column(&self, column: usize) -> &[u8] {
        let bytes = column_bytes(self.outputs);
        &self.codes[column * bytes..][..bytes]
    }

    pub(crate) fn spec(&self) -> WeightSpec {
        WeightSpec::Ternary { rows: self.outputs, columns: self.columns, grouped: false }
    }
}

/// Bytes of the packed codes of a column.
pub(crate) fn column_bytes(outputs: usize) -> usize {
    row_bytes(outputs.next_multiple_of(TILE_SUMS))
}

/// The codes of a block of outputs, from `first` on, in a block of columns: four outputs, a plane
/// apart, share a byte, as they do in a packed column. Zeros beyond the last output.
fn turn(matrix: &TernaryMatrix, first: usize, block: usize) -> [[u8; BLOCK_COLUMNS]; BLOCK_BYTES] {
    const SHIFTS: [u32; 4] = [0, 2, 4, 6];
    let mut turned = [[0; BLOCK_COLUMNS]; BLOCK_BYTES];
    for within in 0..BLOCK_COLUMNS.min(matrix.rows() - first) {
        let codes = &matrix.row(first + within)[block * BLOCK_BYTES..][..BLOCK_BYTES];
        let quads = &mut turned[within % PLANE_COLUMNS];
        let place = SHIFTS[within / PLANE_COLUMNS];
        for (plane, shift) in quads.chunks_exact_mut(PLANE_COLUMNS).zip(SHIFTS) {
            for (quad, codes) in plane.iter_mut().zip(codes) {
                *quad |= (codes >> shift & 0b11) << place;
            }
        }
    }
    turned
}

#[cfg(test)]
mod tests {
    use setun_ops::{random::Random, ternary::code_at};

    use super::*;

    #[test]
    fn columns_are_those_of_the_matrix() {
        let (random, mut team) = (&mut Random::new(5), Team::new(2).unwrap());
        let sizes = [(1, 1), (5, 130), (130, 5), (300, 257)];
        // An interpreter has no patience for the last.
        for &(outputs, columns) in &sizes[..if cfg!(miri) { 3 } else { 4 }] {
            let matrix = random.ternary_with(outputs, columns, Scales::Tensor(0.5));
            let turned = TernaryColumns::new(&matrix, &mut team).unwrap();
            for column in 0..columns {
                for output in 0..outputs {
                    let weight = code_at(turned.column(column), output).cast_signed() - 1;
                    assert_eq!(weight, matrix.weight(output, column), "{output}, {column}");
                }
            }
        }
    }
}
