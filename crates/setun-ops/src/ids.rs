//! Numbers of buffers and weights.

/// A numbered buffer of a [`Plan`](crate::Plan).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct BufferId(pub u32);

/// A numbered weight of a [`Plan`](crate::Plan).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct WeightId(pub u32);
