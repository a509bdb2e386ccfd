//! The interface of data readers.

use std::fmt::Debug;

use crate::{
    error::CheckpointError,
    source::ReadRequest,
    tensor::{Tensor, TensorInfo},
};

/// Reads the data of a checkpoint, as bytes of files.
pub(crate) trait DataReader: Debug + Send + Sync {
    /// File and range of the next piece, while there is one.
    fn next_read(&self) -> Option<ReadRequest>;

    /// Takes the piece that was wanted; what is whole goes to the end of `ready`.
    fn append(&mut self, bytes: &[u8], ready: &mut Vec<Tensor>) -> Result<(), CheckpointError>;

    /// All tensors, in the order in which they will come.
    fn tensors(&self) -> &[TensorInfo];

    /// Passes over the tensors of which `keep` is false, but not over one that has partly arrived.
    fn select(&mut self, keep: &mut dyn FnMut(&TensorInfo) -> bool);

    /// Lets the tensors come in ascending order of `key`, those of one key as they were. Has no
    /// effect once data have arrived.
    fn sort(&mut self, key: &mut dyn FnMut(&TensorInfo) -> usize);
}
