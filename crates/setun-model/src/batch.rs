//! One step's work.

use setun_ops::{argmax::ArgmaxRequest, top_logits::TopLogitsRequest};

/// A sequence of a [`PagedCache`](crate::PagedCache).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SequenceId(pub u64);

/// What a step is to output for a row.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum RequestedOutput {
    /// Nothing: the row only enters the cache.
    #[default]
    Nothing,
    /// All logits.
    Logits,
    /// Some logits: those of the touched tokens and of the best others. A model may give all.
    TopLogits(TopLogitsRequest),
    /// The hidden state after the last layer and its norm, of which the head makes logits. All
    /// rows of a step that want anything want it, or none.
    HiddenState,
    /// The greedy token, from a model that [chooses](crate::Model::run_multi_step). Others give all logits.
    Argmax(ArgmaxRequest),
}

/// One token of a step.
#[derive(Clone, Debug, PartialEq)]
pub struct BatchRow {
    /// The token.
    pub token: u32,
    /// Its absolute position in its sequence; reserved by [`PagedCache::extend`](crate::PagedCache::extend).
    pub position: usize,
    /// Its sequence.
    pub sequence: SequenceId,
    /// What is output for it.
    pub output: RequestedOutput,
}

/// The rows of one step. Prefill, decode, ragged and continuous batches, forks and
/// speculation are all this. Rows of one sequence stand in ascending order of position.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Batch {
    /// The rows.
    pub rows: Vec<BatchRow>,
}

impl Batch {
    /// Number of rows of which something is requested.
    #[must_use]
    pub fn wanted(&self) -> usize {
        self.rows.iter().filter(|row| row.output != RequestedOutput::Nothing).count()
    }

    /// Appends consecutive tokens of one sequence, the first at `position`, with what is requested
    /// of the last; of the others it is nothing.
    pub fn push_run(
        &mut self,
        sequence: SequenceId,
        position: usize,
        tokens: &[u32],
        last: RequestedOutput,
    ) {
        self.rows.extend(tokens.iter().enumerate().map(|(offset, &token)| BatchRow {
            token,
            position: position + offset,
            sequence,
            output: RequestedOutput::Nothing,
        }));
        if let (Some(row), false) = (self.rows.last_mut(), tokens.is_empty()) {
            row.output = last;
        }
    }

    /// Requests all logits of the rows from `first` on.
    pub fn request_logits(&mut self, first: usize) {
        self.rows[first..].iter_mut().for_each(|row| row.output = RequestedOutput::Logits);
    }
}
