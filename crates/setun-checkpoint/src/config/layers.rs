//! The kinds of layers.

use setun_ops::delta_net::DeltaNetShape;

/// How a layer mixes positions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mixer {
    /// Causal attention over the KV cache, with the heads of the configuration.
    Attention,
    /// A gated delta net over a recurrent state.
    DeltaNet(DeltaNetShape),
}

impl Mixer {
    /// The shape of a delta net's heads, if it is one.
    #[must_use]
    pub fn delta_net(self) -> Option<DeltaNetShape> {
        match self {
            Self::Attention => None,
            Self::DeltaNet(shape) => Some(shape),
        }
    }
}
