//! Tables in blocks of integers, widened exactly: embeddings, heads, gains.

use setun_ops::aligned::{Aligned, NoMemory};

use super::{q4_0, q6_k, q8_0, rows};
use crate::{dtype::Dtype, error::CheckpointError, side_by_side::side_by_side, tensor::Tensor};

/// The types of tables of integers, which are widened to `f32`.
pub const TABLES: [Dtype; 3] = [Dtype::Q8_0, Dtype::Q4_0, Dtype::Q6K];

/// Blocks that one core takes.
const RUN: usize = 1024;

/// The elements of a tensor of one of [`TABLES`], each the product of its numbers in `f32`.
pub(crate) fn floats(tensor: &Tensor) -> Result<Aligned<f32>, CheckpointError> {
    let info = &tensor.info;
    let form = match info.dtype {
        Dtype::Q8_0 => &q8_0::FORM,
        Dtype::Q4_0 => &q4_0::FORM,
        Dtype::Q6K => &q6_k::FORM,
        found => {
            let (tensor, expected) = (info.name.clone(), TABLES.to_vec());
            return Err(CheckpointError::Dtype { tensor, expected, found });
        }
    };
    let stored = rows::stored_bytes(tensor)?;
    let no_memory = |NoMemory { bytes }| CheckpointError::OutOfMemory {
        tensor: info.name.clone(),
        bytes: bytes as u64,
    };
    let mut values = Aligned::filled(0.0, info.elements()).map_err(no_memory)?;
    let runs = stored.chunks(RUN * form.bytes).zip(values.chunks_mut(RUN * form.elements));
    side_by_side(runs.collect(), |(stored, values)| {
        let blocks = stored.chunks_exact(form.bytes).zip(values.chunks_exact_mut(form.elements));
        blocks.for_each(|(stored, values)| (form.decode)(stored, values));
    });
    Ok(values)
}
