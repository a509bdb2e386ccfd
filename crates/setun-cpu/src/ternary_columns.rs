//! A ternary matrix kept column by column, for activations that are mostly zero.

use setun_ops::{
    OpsError, TernaryMatrix, WeightSpec,
    ternary::{BLOCK_BYTES, BLOCK_COLUMNS, PLANE_COLUMNS, Scales, row_bytes},
};

use crate::{column_sums::TILE_SUMS, huge_pages, step::zeroed};

/// The codes of each column for all outputs, packed as a [`TernaryMatrix`] packs those of a row:
/// the transposed matrix, padded with zeros to whole tiles of sums.
#[derive(Debug)]
pub(crate) struct TernaryColumns {
    outputs: usize,
    columns: usize,
    codes: Vec<u8>, // [columns, column_bytes(outputs)]
    scales: Scales,
}

impl TernaryColumns {
    /// Whether a matrix can be kept so: sums by column groups are apart from each other.
    pub(crate) fn can_hold(matrix: &TernaryMatrix) -> bool {
        !matches!(matrix.scales(), Scales::ColumnGroups { .. })
    }

    /// Turns a matrix that [can be held](Self::can_hold).
    pub(crate) fn new(matrix: &TernaryMatrix) -> Result<Self, OpsError> {
        let (outputs, columns) = (matrix.rows(), matrix.columns());
        let bytes = column_bytes(outputs);
        let mut codes: Vec<u8> = zeroed(columns * bytes, "a matrix by columns")?;
        huge_pages::advise(&codes);
        let nothing = zeroed(row_bytes(columns), "a row")?;
        // Four rows share each byte of the result.
        for byte in 0..bytes {
            let first = byte / BLOCK_BYTES * BLOCK_COLUMNS + byte % BLOCK_BYTES;
            let rows = [0, 1, 2, 3].map(|plane| match first + plane * PLANE_COLUMNS {
                output if output < outputs => matrix.row(output),
                _ => &nothing,
            });
            for (column, packed) in codes.chunks_exact_mut(bytes).enumerate() {
                let (at, shift) = place(column);
                let code = |row: &[u8]| row[at] >> shift & 0b11;
                let [a, b, c, d] = rows.map(code);
                packed[byte] = a | b << 2 | c << 4 | d << 6;
            }
        }
        Ok(Self { outputs, columns, codes, scales: matrix.scales().clone() })
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

/// Byte and shift of a column's code in a row.
fn place(column: usize) -> (usize, u32) {
    const SHIFTS: [u32; 4] = [0, 2, 4, 6];
    let (block, within) = (column / BLOCK_COLUMNS, column % BLOCK_COLUMNS);
    (block * BLOCK_BYTES + within % PLANE_COLUMNS, SHIFTS[within / PLANE_COLUMNS])
}

#[cfg(test)]
mod tests {
    use setun_ops::{parity::Random, ternary::code_at};

    use super::*;

    #[test]
    fn columns_are_those_of_the_matrix() {
        let random = &mut Random::new(5);
        for (outputs, columns) in [(1, 1), (5, 130), (130, 5), (300, 257)] {
            let matrix = random.ternary_with(outputs, columns, Scales::Tensor(0.5));
            let turned = TernaryColumns::new(&matrix).unwrap();
            for column in 0..columns {
                for output in 0..outputs {
                    let weight = code_at(turned.column(column), output).cast_signed() - 1;
                    assert_eq!(weight, matrix.weight(output, column), "{output}, {column}");
                }
            }
        }
    }
}
