//! Names of sequences.

/// A sequence of a [`PagedCache`](crate::PagedCache).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SequenceId(pub u64);
