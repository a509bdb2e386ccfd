//! Ternary matrices of every stored form that has its scales with it.

use setun_ops::{aligned::Aligned, ternary::Scales};

use crate::{dtype::Dtype, error::CheckpointError, fake, scaled_codes, tensor::Tensor};

/// The types that [`unpack`] reads.
pub const TYPES: [Dtype; 4] = [Dtype::F32, Dtype::F16, Dtype::Bf16, Dtype::ScaledCodes];

/// Codes `[rows, row_bytes(columns)]` in the layout of [`setun_ops::ternary`], padding included,
/// and as few scales as say the same as those stored.
///
/// # Errors
///
/// If the tensor is no matrix of one of [`TYPES`], a weight is not ternary, or a scale is not
/// finite.
pub fn unpack(tensor: &Tensor) -> Result<(Aligned<u8>, Scales), CheckpointError> {
    match tensor.info.dtype {
        Dtype::F32 | Dtype::F16 | Dtype::Bf16 => fake::unpack(tensor),
        Dtype::ScaledCodes => scaled_codes::split(tensor),
        found => {
            let (tensor, expected) = (tensor.info.name.clone(), TYPES.to_vec());
            Err(CheckpointError::Dtype { tensor, expected, found })
        }
    }
}
