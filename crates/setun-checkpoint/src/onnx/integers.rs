//! Tables of integers of four or eight bits with scales by block, as `GatherBlockQuantized` and
//! `MatMulNBits` have them.
//!
//! An element is `(integer − zero point) · scale`: the product in `f32`, rounded once to the type
//! of the scales, which is that of the operation's result.

use super::nbits::Stored;
use crate::{
    error::CheckpointError,
    tensor::{TensorData, TensorInfo},
};

/// The elements of a table, in the type that it is said to have.
///
/// # Errors
///
/// If there is no memory for them.
pub(super) fn table(info: &TensorInfo, stored: &Stored<'_>) -> Result<TensorData, CheckpointError> {
    let form = &stored.form;
    let groups = stored.columns.div_ceil(form.block);
    info.float_rows(|row, values| {
        let bytes = &stored.codes[row * form.row..][..form.row];
        for (group, values) in values.chunks_mut(form.block).enumerate() {
            let zero = stored.zero(row, group, groups);
            let scale = stored.scales[row * groups + group];
            for (place, value) in values.iter_mut().enumerate() {
                let integer = form.integer(bytes, group * form.block + place);
                *value = (integer - zero) * scale;
            }
        }
    })
}
