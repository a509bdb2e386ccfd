//! Tensors without content, such as the end of a file that was never written.

use setun::{
    checkpoint::{TensorData, outline::Content, warning::listed},
    ops::ternary::{BLOCK_COLUMNS, Scales, TernaryMatrix},
};

/// Names of tensors that hold nothing but one value.
#[derive(Debug, Default)]
pub(super) struct Blank {
    names: Vec<String>,
}

impl Blank {
    /// Looks at a tensor. A bias may well be zero.
    pub(super) fn add(&mut self, name: &str, content: &Content) {
        let is_blank = match content {
            Content::Ternary(matrix) => is_blank_matrix(matrix),
            Content::Floats(tensor) => match &tensor.data {
                TensorData::F32(values) => values.iter().all(|value| *value == 0.0),
                TensorData::F16(values) => values.iter().all(|value| value.to_f32() == 0.0),
                TensorData::Bf16(values) => values.iter().all(|value| value.to_f32() == 0.0),
                TensorData::Bytes(_) => false,
            },
        };
        if is_blank && name.rsplit('.').next() != Some("bias") {
            self.names.push(name.to_owned());
        }
    }

    /// The warning, if there are any.
    pub(super) fn warning(&self) -> Option<String> {
        let what = "norms or matrices hold only zeros or one value, as the end of a file does that \
                    was not downloaded whole";
        (!self.names.is_empty()).then(|| format!("{what}: {}", listed(&self.names)))
    }
}

/// Whether all scales of a matrix are zero, or all its codes are the same.
fn is_blank_matrix(matrix: &TernaryMatrix) -> bool {
    let has_no_scale = match matrix.scales() {
        Scales::Tensor(scale) => *scale == 0.0,
        Scales::Rows(values) | Scales::ColumnGroups { values, .. } => {
            values.iter().all(|value| *value == 0.0)
        }
    };
    // Behind the columns of other matrices there are codes of no column.
    let is_whole = matrix.columns().is_multiple_of(BLOCK_COLUMNS);
    let first = matrix.codes().first();
    let is_one_code = |byte: u8| byte.is_multiple_of(0b0101_0101);
    has_no_scale
        || is_whole
            && first.is_some_and(|first| {
                is_one_code(*first) && matrix.codes().iter().all(|byte| byte == first)
            })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_code_or_no_scale_is_blank() {
        let blank = |codes: Vec<u8>, columns, scale| {
            let matrix = TernaryMatrix::new(2, columns, codes, Scales::Tensor(scale));
            let mut blank = Blank::default();
            blank.add("a.weight", &Content::Ternary(matrix.expect("a matrix")));
            blank.warning().is_some()
        };
        assert!(blank(vec![0; 64], 128, 1.0));
        assert!(blank(vec![0b0101_0101; 64], 128, 1.0));
        let mut codes = vec![0; 64];
        codes[63] = 0b01;
        assert!(!blank(codes.clone(), 128, 1.0));
        assert!(blank(codes, 128, 0.0), "without a scale");
        assert!(!blank(vec![0b0001_0001; 64], 128, 1.0), "one byte, two codes");
    }
}
