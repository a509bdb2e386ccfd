//! Places of linear layers.

/// Where the next linear layer is: the kind of its layer, and its number there. Those of one place are alike in all
/// layers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct LayerPlace {
    pub(super) kind: u8,
    pub(super) index: usize,
}
