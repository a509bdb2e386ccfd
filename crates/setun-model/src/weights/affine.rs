//! Matrices of MLX, whose three tensors come one by one.

use setun_checkpoint::{CheckpointError, Tensor, affine::Affine};

use super::Role;

/// After the name of a layer or a table: its codes.
pub(super) const CODES: &str = ".weight";

/// After the name of a layer or a table: the scales of its groups.
pub(super) const SCALES: &str = ".scales";

/// After the name of a layer or a table: what its groups add; its own bias ends in `.bias`.
pub(super) const BIASES: &str = ".biases";

/// A matrix on its way.
#[derive(Debug)]
pub(super) struct PendingAffine {
    pub(super) rows: usize,
    pub(super) columns: usize,
    pub(super) group: usize,
    codes: Option<Tensor>,
    scales: Option<Tensor>,
    biases: Option<Tensor>,
}

impl PendingAffine {
    /// Before any tensor.
    pub(super) fn new(rows: usize, columns: usize, group: usize) -> Self {
        Self { rows, columns, group, codes: None, scales: None, biases: None }
    }

    /// Takes one of the tensors; what `read` makes of all three with the last of them, which are
    /// no longer kept then.
    pub(super) fn take<T>(
        &mut self,
        tensor: Tensor,
        role: Role,
        read: impl FnOnce(Affine<'_>) -> Result<T, CheckpointError>,
    ) -> Result<Option<T>, CheckpointError> {
        *self.place(role) = Some(tensor);
        if [&self.codes, &self.scales, &self.biases].iter().any(|tensor| tensor.is_none()) {
            return Ok(None);
        }
        let (Some(codes), Some(scales), Some(biases)) =
            (self.codes.take(), self.scales.take(), self.biases.take())
        else {
            return Ok(None);
        };
        let shape = (self.rows, self.columns);
        read(Affine::new(&codes, &scales, &biases, shape, self.group)?).map(Some)
    }

    /// Whether the tensor of a role is not there.
    pub(super) fn waits_for(&self, role: Role) -> bool {
        match role {
            Role::Weight => self.codes.is_none(),
            Role::Scale => self.scales.is_none(),
            Role::Offset => self.biases.is_none(),
            Role::Bias => false,
        }
    }

    fn place(&mut self, role: Role) -> &mut Option<Tensor> {
        match role {
            Role::Scale => &mut self.scales,
            Role::Offset => &mut self.biases,
            Role::Weight | Role::Bias => &mut self.codes,
        }
    }
}
