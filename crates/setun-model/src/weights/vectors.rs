//! Vectors by the way in which they are stored.

use setun_ops::delta_net::decay_factor;

/// How a vector is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum VectorForm {
    /// As it is used.
    Plain,
    /// Without the 1 that is added.
    UnitGain,
    /// Logarithms of the negated elements.
    NegatedLogarithm,
    /// A matrix `[len / taps, taps]`, used by columns.
    Taps(usize),
}

impl VectorForm {
    /// The vector as it is used, of elements as they are stored.
    pub(super) fn read(self, stored: Vec<f32>) -> Vec<f32> {
        match self {
            Self::Plain => stored,
            Self::UnitGain => stored.into_iter().map(|gain| 1.0 + gain).collect(),
            Self::NegatedLogarithm => stored.into_iter().map(decay_factor).collect(),
            Self::Taps(taps) => {
                (0..taps).flat_map(|tap| stored.iter().skip(tap).step_by(taps).copied()).collect()
            }
        }
    }
}
