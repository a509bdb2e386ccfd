//! One step's work.

use crate::cache::SequenceId;

/// One token of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BatchRow {
    /// The token.
    pub token: u32,
    /// Its absolute position in its sequence; reserved by [`PagedCache::extend`](crate::PagedCache::extend).
    pub position: usize,
    /// Its sequence.
    pub sequence: SequenceId,
    /// Whether its logits are wanted.
    pub wants_logits: bool,
}

/// The rows of one step. Prefill, decode, ragged and continuous batches, forks and
/// speculation are all this. Rows of one sequence stand in ascending order of position.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Batch {
    /// The rows.
    pub rows: Vec<BatchRow>,
}

impl Batch {
    /// Number of rows whose logits are wanted.
    #[must_use]
    pub fn wanted(&self) -> usize {
        self.rows.iter().filter(|row| row.wants_logits).count()
    }

    /// Appends consecutive tokens of one sequence, the first at `position`; the logits of the
    /// last are wanted if `last_wanted`.
    pub fn push_run(
        &mut self,
        sequence: SequenceId,
        position: usize,
        tokens: &[u32],
        last_wanted: bool,
    ) {
        self.rows.extend(tokens.iter().enumerate().map(|(offset, &token)| BatchRow {
            token,
            position: position + offset,
            sequence,
            wants_logits: last_wanted && offset + 1 == tokens.len(),
        }));
    }
}
