//! The shape of recurrent states.

use crate::delta_net_shape::DeltaNetShape;

/// Shape of recurrent states.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecurrentSpec {
    /// Layers with a state.
    pub layers: usize,
    /// Shape of each.
    pub shape: DeltaNetShape,
    /// Most tentative rows of a state.
    pub tentative: usize,
}

impl RecurrentSpec {
    /// Rows of the ring. The row of a position is that of its number modulo this.
    #[must_use]
    pub fn ring(&self) -> usize {
        self.shape.kernel - 1 + self.tentative
    }

    /// Floats of a layer's matrices, `[value_heads, key_dim, value_dim]`, those of a key head together.
    #[must_use]
    pub fn matrices(&self) -> usize {
        self.shape.value_width() * self.shape.key_dim
    }

    /// Floats of a layer's ring, `[ring, key_heads, history_of_key_head]`.
    #[must_use]
    pub fn history(&self) -> usize {
        self.ring() * self.shape.history_width()
    }

    /// Bytes of one state over all layers.
    #[must_use]
    pub fn state_bytes(&self) -> usize {
        size_of::<f32>() * self.layers * (self.matrices() + self.history())
    }
}
