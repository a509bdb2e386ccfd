//! Steps cut into pieces, each some rows.

use setun_ops::{
    BatchInputs, BlockId, HAS_RECURRENT, StateId,
    numeric::to_u32,
    top_logits::{Ranked, TopLogitsRequest},
};

use crate::{error::ModelError, model::MemoryUse, plan::HeadOutput, profile::Profile};

/// Some rows of a step on their way through the stages, from which they come back with what was
/// asked of them.
#[derive(Debug, Default)]
pub(crate) struct Microbatch {
    /// Of the step.
    pub(super) number: u64,
    /// Blocks that a cache must have, or is to have no more than.
    pub(super) blocks: usize,
    /// Recurrent states that a cache must have, or is to have no more than.
    pub(super) states: usize,
    /// Blocks that it may have.
    pub(super) max_blocks: usize,
    /// Whether it is no step: caches are shrunk.
    pub(super) shrinks: bool,
    /// True if other pieces of its step come before it, and after it.
    pub(super) has_others: [bool; 2],
    /// Rows of the last step for which the head runs [alone](HeadOutput::Alone), without a step.
    pub(super) head_rows: Vec<usize>,
    /// Copies that each stage must make before it runs the step.
    pub(super) copies: Vec<(BlockId, BlockId)>,
    /// As those, of recurrent states.
    pub(super) state_copies: Vec<(StateId, StateId)>,
    /// The rows. That of which something is requested is for the last stage alone.
    pub(super) inputs: BatchInputs,
    pub(super) wanted: Vec<u32>,
    pub(super) top_logits: Vec<TopLogitsRequest>,
    pub(super) head: HeadOutput,
    pub(super) profiled: bool,
    /// What the last stage that had it has made of it, `[rows, hidden]`.
    pub(super) hidden: Vec<f32>,
    /// Where something was requested: one of the two.
    pub(super) logits: Vec<f32>, // [wanted, vocab], or states [wanted, hidden]
    pub(super) ranked: Vec<Ranked>, // [wanted, capacity]
    /// Whether a stage did not run it.
    pub(super) failed: bool,
    /// Why, if it was not that a piece before it had failed.
    pub(super) error: Option<ModelError>,
    /// Of all stages.
    pub(super) memory: MemoryUse,
    pub(super) profile: Profile,
}

/// Makes pieces. Their memory is kept from step to step.
#[derive(Debug, Default)]
pub(super) struct Pieces {
    number: u64,
    spare: Vec<Microbatch>,
}

impl Pieces {
    /// Begins a step: its number, and how many pieces it is cut into.
    pub(super) fn begin(&mut self, rows: usize, piece_rows: usize) -> (u64, usize) {
        self.number += 1;
        (self.number, (rows / piece_rows).max(1))
    }

    /// Microbatch `index` of `count` of about the same number of rows.
    pub(super) fn cut(&mut self, inputs: &BatchInputs, index: usize, count: usize) -> Microbatch {
        let mut piece = self.spare.pop().unwrap_or_default();
        piece.number = self.number;
        piece.has_others = [index > 0, index + 1 < count];
        let rows = inputs.rows();
        piece.take_rows(inputs, rows * index / count, rows * (index + 1) / count);
        piece
    }

    /// Keeps the memory of a piece that has come back.
    pub(super) fn spare(&mut self, mut piece: Microbatch) {
        piece.clear();
        self.spare.push(piece);
    }
}

impl Microbatch {
    fn take_rows(&mut self, whole: &BatchInputs, first: usize, end: usize) {
        let range = first..end;
        let slots = &whole.slots[range.clone()];
        let least = slots.iter().copied().min().unwrap_or(0);
        let most = slots.iter().copied().max().map_or(0, |most| most as usize + 1);
        let inputs = &mut self.inputs;
        inputs.tokens.extend_from_slice(&whole.tokens[range.clone()]);
        inputs.positions.extend_from_slice(&whole.positions[range]);
        inputs.slots.extend(slots.iter().map(|slot| slot - least));
        inputs.block_tables.extend_from_slice(&whole.block_tables[least as usize..most]);
        if HAS_RECURRENT && !whole.states.is_empty() {
            let of_slot = |slot: usize| {
                let positions = |rows: std::ops::Range<usize>| {
                    let mut rows = rows.filter(|&row| whole.slots[row] as usize == slot);
                    let first = rows.next()?;
                    let last = rows.next_back().unwrap_or(first);
                    Some((whole.positions[first], whole.positions[last] + 1))
                };
                let begun = positions(0..first).is_some();
                whole.states[slot].cut(positions(first..end), begun)
            };
            inputs.states.extend((least as usize..most).map(of_slot));
        }
        for (index, &row) in whole.wanted.iter().enumerate() {
            if (first..end).contains(&(row as usize)) {
                self.wanted.push(row - to_u32(first));
                self.top_logits.extend(whole.top_logits.get(index).cloned());
            }
        }
    }

    fn clear(&mut self) {
        let Self {
            copies, state_copies, inputs, wanted, top_logits, hidden, logits, ranked, ..
        } = self;
        self.head_rows.clear();
        inputs.clear();
        wanted.clear();
        top_logits.clear();
        copies.clear();
        state_copies.clear();
        hidden.clear();
        logits.clear();
        ranked.clear();
        (self.shrinks, self.failed, self.error) = (false, false, None);
        (self.memory, self.profile) = (MemoryUse::default(), Profile::default());
    }
}
