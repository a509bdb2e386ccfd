//! Random operations on a scheduler, and the draft model beside them.

use proptest::prelude::*;

use super::{Asked, BLOCKS, Operation, SEED};
use crate::memory_pressure::Pressure;

fn asked() -> impl Strategy<Value = Asked> {
    // Few prompts, most of which begin alike.
    let prompt = (0..3_u32, 1..60_usize).prop_map(|(first, len)| {
        let len = u32::try_from(len).unwrap();
        (0..len).map(|at| if at < 9 { at } else { (at * at + first) % 10 }).collect()
    });
    let scheduled = (0..3_i32, 0..3_u8, 0..9_usize, 0..9_usize);
    (prompt, 1..=100_usize, 1..4_u64, any::<bool>(), 0..4_u64, scheduled).prop_map(
        |(prompt, max_tokens, samples, is_warm, seed, (priority, salt, lookahead, beams))| Asked {
            prompt,
            max_tokens,
            samples: if beams > 5 { 1 } else { samples },
            is_warm,
            seed,
            priority,
            salt,
            lookahead: lookahead.saturating_sub(3),
            beams: beams.saturating_sub(5),
        },
    )
}

pub(super) fn operation() -> impl Strategy<Value = Operation> {
    let one = 0..64_usize;
    prop_oneof![
        4 => asked().prop_map(Operation::Submit),
        1 => (one.clone(), 1..40_usize).prop_map(|(i, n)| Operation::Continue(i, n)),
        8 => (1..12_usize).prop_map(Operation::Run),
        5 => (one.clone(), 1..80_usize).prop_map(|(i, n)| Operation::Read(i, n)),
        1 => one.clone().prop_map(Operation::Cancel),
        1 => one.prop_map(Operation::Drop),
        1 => Just(Operation::ResetPrefixCache),
        1 => (1..=BLOCKS).prop_map(Operation::Memory),
        1 => Just(Operation::ReleaseMemory(Pressure::Moderate)),
        1 => Just(Operation::ReleaseMemory(Pressure::Critical)),
        1 => (0..2 * BLOCKS).prop_map(Operation::LimitCache),
    ]
}

/// What proposes tokens.
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
