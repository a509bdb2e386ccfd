//! Tables whose tensors come one by one.

use setun_checkpoint::{CheckpointError, Dtype, Tensor, config::LinearClass, dense};
use setun_ops::{DenseMatrix, TernaryMatrix, WeightId};

use super::{Role, linear::PendingPart};
use crate::error::ModelError;

/// A ternary table on its way, whose codes and scales come one by one.
#[derive(Debug)]
pub(super) struct PendingTable {
    pub(super) id: WeightId,
    pub(super) name: String,
    pub(super) matrix: PendingPart, // its `kind` is known from the headers
    pub(super) floats: Dtype,       // those that hold its elements exactly
}

impl PendingTable {
    /// Takes one of the tensors; the whole with the last of them.
    pub(super) fn take(
        &mut self,
        tensor: Tensor,
        role: Role,
    ) -> Result<Option<TernaryMatrix>, ModelError> {
        self.matrix.take(tensor, role, LinearClass::AutoBitLinear)?;
        let is_complete = self.matrix.is_complete(false);
        is_complete.then(|| self.matrix.matrix(&self.name)).transpose()
    }
}

/// A table of int8 codes, of which codes and scales come one by one.
#[derive(Debug)]
pub(super) struct PendingInt8Table {
    pub(super) weight: WeightId,
    pub(super) codes: Option<dense::Int8Codes>,
    pub(super) scales: Option<Tensor>,
}

impl PendingInt8Table {
    /// Takes one of the two; the table once both are there.
    pub(super) fn take(
        &mut self,
        tensor: Tensor,
        is_scales: bool,
    ) -> Result<Option<DenseMatrix>, CheckpointError> {
        if is_scales {
            self.scales = Some(tensor);
        } else {
            self.codes = Some(dense::Int8Codes::new(tensor)?);
        }
        let codes = self.codes.take_if(|_| self.scales.is_some());
        let both = codes.zip(self.scales.as_ref());
        both.map(|(codes, scales)| codes.with_scales(scales)).transpose()
    }
}

/// The two matrices of a delta net on their way.
#[derive(Debug)]
pub(super) struct PendingGates {
    /// Their linear layer, where they are ternary.
    pub(super) linear: usize,
    /// Their tables, where they are not.
    pub(super) dense: [WeightId; 2],
    pub(super) tensors: [Option<Tensor>; 2],
}
