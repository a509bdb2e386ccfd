//! Errors of models and their caches.

use setun_checkpoint::CheckpointError;
use setun_ops::OpsError;

use crate::batch::SequenceId;

/// Why a model could not be built or a step could not run.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ModelError {
    /// A tensor is missing, or of a wrong shape, type or value.
    #[error(transparent)]
    Checkpoint(#[from] CheckpointError),

    /// A weight, a plan or a step was refused by its backend.
    #[error(transparent)]
    Ops(#[from] OpsError),

    /// The configuration requests something that the model's families do not have.
    #[error("{what}: found {found}, supported: {supported}")]
    Unsupported {
        /// What was looked at.
        what: &'static str,
        /// What the checkpoint says.
        found: String,
        /// What could be read.
        supported: &'static str,
    },

    /// The stages that a model is split into do not make a whole.
    #[error("the stages of a model: {what}: expected {expected}, found {found}")]
    Stages {
        /// What was counted.
        what: &'static str,
        /// How many a whole needs.
        expected: usize,
        /// How many there are.
        found: usize,
    },

    /// All blocks of the cache are in use.
    #[error("the KV cache is full: {needed} more blocks are needed, {free} of {blocks} are free")]
    CacheFull {
        /// Blocks that the sequence needs beyond its own.
        needed: usize,
        /// Blocks that are not used.
        free: usize,
        /// Most blocks that the cache may have.
        blocks: usize,
    },

    /// A sequence was freed, or is of another cache.
    #[error("sequence {} is not in this cache", .0.0)]
    UnknownSequence(SequenceId),

    /// Some rows of a step want hidden states, and others what the head gives.
    #[error("{states} of {wanted} requested rows request hidden states: all must, or none")]
    MixedOutputs {
        /// Rows that want hidden states.
        states: usize,
        /// Rows that want anything.
        wanted: usize,
    },

    /// A row's position was not reserved in its sequence.
    #[error("row {row} is at position {position}, its sequence has {len} positions")]
    Position {
        /// Row of the batch.
        row: usize,
        /// Its position.
        position: usize,
        /// Positions that the sequence has.
        len: usize,
    },

    /// A row would be written to a block that other sequences read.
    #[error("row {row} writes to position {position}, which its sequence shares with a fork")]
    SharedBlock {
        /// Row of the batch.
        row: usize,
        /// Its position.
        position: usize,
    },

    /// A step has more rows than a model runs at once.
    #[error("a step of {found} rows, expected at most {limit}")]
    Rows {
        /// Rows of the batch.
        found: usize,
        /// Most that are possible.
        limit: usize,
    },

    /// Two rows of one sequence stand in the wrong order.
    #[error("row {row} of the batch does not follow the position before it in its sequence")]
    RowOrder {
        /// Row of the batch.
        row: usize,
    },

    /// Rows do not follow those that the recurrent state of their sequence has taken in.
    #[error("position {position} does not follow a recurrent state of {expected} positions")]
    StatePosition {
        /// Of the first row.
        position: usize,
        /// Positions of the state.
        expected: usize,
    },
}
