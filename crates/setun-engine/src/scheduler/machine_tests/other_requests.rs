//! Drafts beside the requests of a random run.

use proptest::prelude::*;

use super::{BLOCKS, SEED};

#[derive(Clone, Copy, Debug)]
pub(super) enum Beside {
    /// The texts themselves.
    Texts,
    /// A draft that says what the model says.
    Twin,
    /// One that says something else.
    Other,
    /// One that fails where its cache takes more than a few blocks.
    Failing,
}

impl Beside {
    /// The draft's seed, and blocks that the system gives to it.
    pub(super) fn draft(self) -> Option<(u64, usize)> {
        match self {
            Self::Texts => None,
            Self::Twin => Some((SEED, BLOCKS)),
            Self::Other => Some((SEED + 1, BLOCKS)),
            Self::Failing => Some((SEED, 6)),
        }
    }
}

pub(super) fn beside() -> impl Strategy<Value = Beside> {
    use Beside::{Failing, Other, Texts, Twin};
    prop_oneof![Just(Texts), Just(Twin), Just(Other), Just(Failing)]
}
