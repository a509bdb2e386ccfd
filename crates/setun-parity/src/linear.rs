//! Cases of operations with ternary matrices.

use crate::{
    Case, Random,
    rows::{Draft, TOKENS},
};
use setun_ops::{
    DenseMatrix, Op, TernaryMatrix, WeightData,
    dense::DenseValues,
    op::{Activation, Bias, BufferId, Linear},
    plan::{BufferKind, RowSet},
    ternary::Scales,
};

/// Columns around whole planes and blocks; real widths come now and then.
const COLUMNS: [usize; 12] = [1, 31, 32, 96, 100, 127, 128, 129, 320, 640, 1100, 1500];
const REAL_COLUMNS: [usize; 3] = [2560, 6912, 8640];

/// Outputs around whole tiles and panels.
const OUTPUTS: [usize; 11] = [1, 2, 3, 4, 5, 16, 37, 64, 65, 70, 200];

pub(crate) fn ternary_matmul(random: &mut Random) -> Case {
    let mut draft = Draft::new();
    let columns = columns(random);
    let outputs = random.pick(&OUTPUTS);
    let x = quantized(&mut draft, random, columns);
    let matrix = random.ternary(outputs, columns);
    let linear = linear(&mut draft, random, x, matrix);
    draft.maybe_sparse(random, &linear);

    let (before, after) = (random.below(5), random.below(5));
    let out = draft.embedded(random, before + outputs + after);
    draft.push(Op::TernaryMatmul { linear, residual: None, out, out_column: before });
    let residual = draft.embedded(random, outputs);
    let out = draft.buffer(BufferKind::F32, outputs, RowSet::Batch);
    draft.push(Op::TernaryMatmul { linear, residual: Some(residual), out, out_column: 0 });
    let (residual, out) = (Some(residual), residual);
    draft.push(Op::TernaryMatmul { linear, residual, out, out_column: 0 });
    draft.finish(random)
}

pub(crate) fn gate(random: &mut Random) -> Case {
    let mut draft = Draft::new();
    let columns = columns(random);
    let outputs = random.pick(&OUTPUTS);
    let x = quantized(&mut draft, random, columns);
    for activation in [Activation::ReluSquared, Activation::Silu] {
        let (gate, up) = (random.ternary(outputs, columns), random.ternary(outputs, columns));
        let gate = linear(&mut draft, random, x, gate);
        let up = linear(&mut draft, random, x, up);
        let out = draft.buffer(BufferKind::F32, outputs, RowSet::Batch);
        draft.push(Op::Gate { gate, up, activation, out });
    }
    draft.finish(random)
}

fn columns(random: &mut Random) -> usize {
    if random.chance(0.1) { random.pick(&REAL_COLUMNS) } else { random.pick(&COLUMNS) }
}

/// A float buffer, of which any share may be zero.
fn embedded_with_zeros(draft: &mut Draft, random: &mut Random, width: usize) -> BufferId {
    let zeros = random.pick(&[0.0, 0.5, 0.9, 1.0]);
    let mut values = random.table(TOKENS, width);
    for value in &mut values {
        if random.chance(zeros) {
            *value = 0.0;
        }
    }
    let table = DenseMatrix::new(TOKENS, width, DenseValues::F32(values.into()));
    draft.embedded_from(table.expect("sizes agree"))
}

/// A quantized buffer with random codes.
fn quantized(draft: &mut Draft, random: &mut Random, width: usize) -> BufferId {
    let x = embedded_with_zeros(draft, random, width);
    let out = draft.quantized(random, width, RowSet::Batch);
    draft.push(Op::Quantize { x, norm: None, out });
    out
}

/// A layer with or without a bias, before or after the scale.
pub(crate) fn linear(
    draft: &mut Draft,
    random: &mut Random,
    x: BufferId,
    matrix: TernaryMatrix,
) -> Linear {
    let grouped = matches!(matrix.scales(), Scales::ColumnGroups { .. }) || draft.is_grouped(x);
    let values = random.floats(matrix.rows());
    let weight = draft.weight(WeightData::Ternary(matrix));
    let bias = random.chance(0.5).then(|| Bias {
        weight: draft.weight(WeightData::Vector(values)),
        before_scale: !grouped && random.chance(0.5),
    });
    Linear { x, weight, bias }
}
