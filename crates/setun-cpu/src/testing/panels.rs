//! Panels alone: every code in its place, every sum that of the definition.

use setun_ops::{
    random::Random,
    ternary::{BLOCK_COLUMNS, code_at},
    ternary_dot::ternary_dot,
};

use super::{activations, packed_row};
use crate::ternary_panel::{
    BLOCK_QUADS, Four, PANEL_OUTPUTS, PanelSums, Quad, TernaryPanel, UNPACKED_ROWS,
};

/// A panel, and the sums of each number of rows that the kernel takes.
pub(super) fn check_ternary_panel<P: TernaryPanel>(
    isa: P,
    random: &mut Random,
) -> Result<(), String> {
    let blocks = random.between(1, P::BLOCKS);
    let columns = blocks * BLOCK_COLUMNS;
    let weights: Vec<Vec<u8>> = (0..PANEL_OUTPUTS).map(|_| packed_row(random, columns)).collect();
    let mut panel = vec![Quad::default(); blocks * BLOCK_QUADS];
    for first in (0..PANEL_OUTPUTS).step_by(UNPACKED_ROWS) {
        let rows = std::array::from_fn(|index| weights[first + index].as_slice());
        isa.unpack_rows(rows, first, &mut panel);
    }
    compare::<P>(&panel, |output, column| code_at(&weights[output], column))?;

    for rows in 1..=P::ROWS {
        let x: Vec<Vec<i8>> = (0..rows).map(|_| activations(random, columns)).collect();
        let fours: Vec<&[Four]> = x.iter().map(|x| x.as_chunks().0).collect();
        // Sums are added to what is there.
        let mut sums = vec![PanelSums([7; PANEL_OUTPUTS]); rows];
        isa.add_rows(&panel, &fours, &mut sums);
        for (x, sums) in x.iter().zip(&sums) {
            let x_sum: i32 = x.iter().map(|&x| i32::from(x)).sum();
            for (output, (row, found)) in weights.iter().zip(sums.0).enumerate() {
                let expected = 7 + x_sum + ternary_dot(row, x);
                if found != expected {
                    return Err(format!(
                        "{columns} columns, {rows} rows, output {output}: expected {expected}, \
                         found {found}"
                    ));
                }
            }
        }
    }
    Ok(())
}

/// Runs of columns follow each other, in each the outputs, and the columns side by side.
fn compare<P: TernaryPanel>(
    panel: &[Quad],
    expected: impl Fn(usize, usize) -> u8,
) -> Result<(), String> {
    for (place, &found) in panel.iter().flat_map(|quad| &quad.0).enumerate() {
        let (place, within) = (place / P::COLUMNS, place % P::COLUMNS);
        let (run, output) = (place / PANEL_OUTPUTS, place % PANEL_OUTPUTS);
        let column = run * P::COLUMNS + within;
        let expected = expected(output, column);
        if found != expected {
            return Err(format!(
                "output {output}, column {column}: expected {expected}, found {found}"
            ));
        }
    }
    Ok(())
}
