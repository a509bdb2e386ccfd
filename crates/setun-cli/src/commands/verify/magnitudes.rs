//! Numbers that are finite and make results that are not.

use std::collections::BTreeMap;

use setun::{
    checkpoint::{CheckpointError, TensorData, outline::Content},
    ops::{op::Activation, ternary::Scales},
};

/// Parts of a layer, and the norm whose gain multiplies their input.
const GAINS: [(&str, &str); 9] = [
    ("self_attn.q_proj.weight", "input_layernorm.weight"),
    ("self_attn.k_proj.weight", "input_layernorm.weight"),
    ("self_attn.v_proj.weight", "input_layernorm.weight"),
    ("self_attn.o_proj.weight", "self_attn.attn_sub_norm.weight"),
    ("mlp.gate_proj.weight", "post_attention_layernorm.weight"),
    ("mlp.up_proj.weight", "post_attention_layernorm.weight"),
    ("mlp.down_proj.weight", "mlp.ffn_sub_norm.weight"),
    ("self_attn.o_proj.weight", "self_attn.inner_attn_ln.weight"),
    ("mlp.down_proj.weight", "mlp.ffn_layernorm.weight"),
];

/// Looks for scales and floats with which even ordinary activations overflow.
///
/// A norm sums the squares of a row. After a norm activations are near its gain, so that a matrix
/// with the scale s makes `rows` numbers near gain·s·√columns, and an embedding, a gain or a bias x
/// makes `width` numbers near x. relu² of the gate times the up projection is a third power of such
/// numbers.
pub(super) struct Magnitudes {
    activation: Activation,
    largest: BTreeMap<String, Largest>,
}

/// A tensor's largest number, and the one up to which results are finite.
#[derive(Clone, Copy)]
struct Largest {
    found: f32,
    limit: f32,
}

impl Magnitudes {
    pub(super) fn new(activation: Activation) -> Self {
        Self { activation, largest: BTreeMap::new() }
    }

    /// Looks at a tensor by itself.
    ///
    /// # Errors
    ///
    /// [`CheckpointError::TooLarge`] if the sum of the squares exceeds an `f32`.
    pub(super) fn add(&mut self, name: &str, content: &Content) -> Result<(), CheckpointError> {
        let Largest { found, limit } = self.largest_of(name, content);
        if found > limit {
            return Err(CheckpointError::TooLarge { tensor: name.to_owned(), found, limit });
        }
        self.largest.insert(name.to_owned(), Largest { found, limit });
        Ok(())
    }

    /// Looks at each matrix with the gain of its input.
    ///
    /// # Errors
    ///
    /// [`CheckpointError::TooLargeTogether`] if the sum of the squares exceeds an `f32`.
    pub(super) fn finish(self) -> Result<(), CheckpointError> {
        for (tensor, Largest { found, limit }) in &self.largest {
            let gain = GAINS.iter().find_map(|(part, norm)| {
                let gain = format!("{}{norm}", tensor.strip_suffix(part)?);
                self.largest.get(&gain).map(|largest| (gain, largest.found))
            });
            let Some((gain, factor)) = gain else { continue };
            let (found, limit) = (found * factor, *limit);
            if found > limit {
                let tensor = tensor.clone();
                return Err(CheckpointError::TooLargeTogether { tensor, gain, found, limit });
            }
        }
        Ok(())
    }

    fn largest_of(&self, name: &str, content: &Content) -> Largest {
        let is_cubed = self.activation == Activation::ReluSquared
            && ["mlp.gate_proj.", "mlp.up_proj."].iter().any(|part| name.contains(part));
        match content {
            Content::Ternary(matrix) => {
                let found = match matrix.scales() {
                    Scales::Tensor(scale) => scale.abs(),
                    Scales::Rows(values) | Scales::ColumnGroups { values, .. } => {
                        largest(values.iter().copied())
                    }
                };
                let power = if is_cubed { 3 } else { 1 };
                Largest { found, limit: limit(matrix.rows(), matrix.columns(), power) }
            }
            Content::Floats(tensor) => {
                let found = match &tensor.data {
                    TensorData::F32(values) => largest(values.iter().copied()),
                    TensorData::F16(values) => largest(values.iter().map(|value| value.to_f32())),
                    TensorData::Bf16(values) => largest(values.iter().map(|value| value.to_f32())),
                    TensorData::Bytes(_) => 0.0,
                };
                let width = tensor.info.shape.last().copied().unwrap_or(1);
                Largest { found, limit: limit(width, 1, 1) }
            }
        }
    }
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
        let mut magnitudes = Magnitudes::new(Activation::ReluSquared);
        magnitudes.add(name, &matrix(scale)).map_err(|error| error.to_string())
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

    #[test]
    fn a_gain_and_a_scale_that_overflow_together_are_found() {
        let check = |part: &str, norm: &str, gain: f32, scale: f32| {
            let mut magnitudes = Magnitudes::new(Activation::ReluSquared);
            for (name, number) in [(part, scale), (norm, gain)] {
                let name = format!("model.layers.7.{name}");
                magnitudes.add(&name, &matrix(number)).expect("each alone is small enough");
            }
            magnitudes.finish().map_err(|error| error.to_string())
        };
        for (part, norm) in GAINS {
            assert_eq!(check(part, norm, 100.0, 100.0), Ok(()), "{part}");
            let error = check(part, norm, 1e15, 1e4).expect_err("too large together");
            assert!(error.contains(part) && error.contains(norm), "{error}");
        }
        assert_eq!(check(GAINS[0].0, GAINS[3].1, 1e15, 1e4), Ok(()), "the gain of another part");
    }
}
