//! Numbers that are finite and make results that are not.

use setun::{
    checkpoint::{CheckpointError, TensorData, outline::Content},
    ops::{op::Activation, ternary::Scales},
};

/// Refuses scales and floats with which even ordinary activations overflow.
///
/// A norm sums the squares of a row. After a norm activations are near 1, so that a matrix with
/// the scale s makes `rows` numbers near s·√columns, and an embedding, a gain or a bias x makes
/// `width` numbers near x. relu² of the gate times the up projection is a third power of such
/// numbers.
///
/// # Errors
///
/// [`CheckpointError::TooLarge`] if the sum of their squares exceeds an `f32`.
pub(super) fn check(
    activation: Activation,
    name: &str,
    content: &Content,
) -> Result<(), CheckpointError> {
    let is_cubed = activation == Activation::ReluSquared
        && ["mlp.gate_proj.", "mlp.up_proj."].iter().any(|part| name.contains(part));
    let (found, limit) = match content {
        Content::Ternary(matrix) => {
            let found = match matrix.scales() {
                Scales::Tensor(scale) => scale.abs(),
                Scales::Rows(values) | Scales::ColumnGroups { values, .. } => {
                    largest(values.iter().copied())
                }
            };
            (found, limit(matrix.rows(), matrix.columns(), if is_cubed { 3 } else { 1 }))
        }
        Content::Floats(tensor) => {
            let found = match &tensor.data {
                TensorData::F32(values) => largest(values.iter().copied()),
                TensorData::F16(values) => largest(values.iter().map(|value| value.to_f32())),
                TensorData::Bf16(values) => largest(values.iter().map(|value| value.to_f32())),
                TensorData::Bytes(_) => 0.0,
            };
            (found, limit(tensor.info.shape.last().copied().unwrap_or(1), 1, 1))
        }
    };
    if found <= limit {
        return Ok(());
    }
    Err(CheckpointError::TooLarge { tensor: name.to_owned(), found, limit })
}

fn largest(values: impl Iterator<Item = f32>) -> f32 {
    values.fold(0.0, |largest, value| if value.abs() > largest { value.abs() } else { largest })
}

/// The largest s of which the squares of `rows` numbers (s·√columns)ᵖᵒʷᵉʳ have a finite sum.
#[expect(clippy::cast_precision_loss, clippy::cast_possible_truncation, reason = "a bound")]
fn limit(rows: usize, columns: usize, power: i32) -> f32 {
    let square = (f64::from(f32::MAX) / rows.max(1) as f64).powf(1.0 / f64::from(power));
    (square / columns.max(1) as f64).sqrt() as f32
}

#[cfg(test)]
mod tests {
    use setun::ops::ternary::TernaryMatrix;

    use super::*;

    fn matrix(scale: f32) -> Content {
        let matrix = TernaryMatrix::new(2, 128, vec![0; 64], Scales::Tensor(scale));
        Content::Ternary(matrix.expect("a matrix"))
    }

    fn check(name: &str, scale: f32) -> Result<(), String> {
        super::check(Activation::ReluSquared, name, &matrix(scale))
            .map_err(|error| error.to_string())
    }

    #[test]
    fn scales_whose_results_overflow_are_found() {
        for scale in [1.0, 1e-30, -3.0, 1e15] {
            assert_eq!(check("o_proj.weight", scale), Ok(()), "{scale}");
        }
        for scale in [3e18, -3e18, f32::MAX] {
            let error = check("o_proj.weight", scale).expect_err("too large");
            assert!(error.contains("tensor `o_proj.weight` has the number 3"), "{error}");
        }
        let gate = "model.layers.0.mlp.gate_proj.weight";
        assert_eq!(check(gate, 1e4), Ok(()));
        check(gate, 1e8).expect_err("its third power is too large");
    }
}
