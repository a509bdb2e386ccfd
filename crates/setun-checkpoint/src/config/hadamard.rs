//! The rotation of inputs that weights were trained for.

use std::collections::{BTreeMap, BTreeSet};

/// A rotation of the inputs of matrices: each column is multiplied by its sign, then each block of
/// columns by a Sylvester Hadamard matrix divided by the root of its size.
#[derive(Clone, Debug, PartialEq)]
pub struct Hadamard {
    /// Columns of a block, a power of two that divides the width of each rotated input.
    pub block: usize,
    /// Signs by width of the input, each +1 or -1; none where all are +1.
    pub signs: BTreeMap<usize, Vec<f32>>,
    /// Names of the linear layers with rotated inputs, `lm_head` among them where it has one.
    pub layers: BTreeSet<String>,
    /// Whether rows of the embedding are rotated: they are turned back before their first use.
    pub embedding: bool,
}
