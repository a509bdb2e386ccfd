//! Tables of integers of four or eight bits with scales by block, as `GatherBlockQuantized` and
//! `MatMulNBits` have them.
//!
//! An element is `(integer − zero point) · scale`: the product in `f32`, rounded once to the type
//! of the scales, which is that of the operation's result.

use half::{bf16, f16};
use setun_ops::aligned::{Aligned, NoMemory};

use super::nbits::Stored;
use crate::{
    dtype::Dtype,
    error::CheckpointError,
    side_by_side::{RUN_ROWS, side_by_side},
    tensor::{TensorData, TensorInfo},
};

/// The elements of a table, in the type that it is said to have.
///
/// # Errors
///
/// If there is no memory for them.
pub(super) fn table(info: &TensorInfo, stored: &Stored<'_>) -> Result<TensorData, CheckpointError> {
    let data = match info.dtype {
        Dtype::F16 => widened(info, stored, f16::from_f32).map(TensorData::F16),
        Dtype::Bf16 => widened(info, stored, bf16::from_f32).map(TensorData::Bf16),
        _ => widened(info, stored, |value| value).map(TensorData::F32),
    };
    data.map_err(|error| info.no_memory(error))
}

fn widened<T: Copy + Default + Send>(
    info: &TensorInfo,
    stored: &Stored<'_>,
    round: impl Fn(f32) -> T + Sync,
) -> Result<Aligned<T>, NoMemory> {
    let columns = stored.columns;
    let mut values = Aligned::filled(T::default(), info.elements())?;
    let runs = values.chunks_mut((RUN_ROWS * columns).max(1)).enumerate().collect();
    side_by_side(runs, |(run, values)| {
        for (place, values) in values.chunks_exact_mut(columns.max(1)).enumerate() {
            widen_row(stored, run * RUN_ROWS + place, values, &round);
        }
    });
    Ok(values)
}

fn widen_row<T>(stored: &Stored<'_>, row: usize, values: &mut [T], round: &impl Fn(f32) -> T) {
    let form = &stored.form;
    let groups = stored.columns.div_ceil(form.block);
    let bytes = &stored.codes[row * form.row..][..form.row];
    for (group, values) in values.chunks_mut(form.block).enumerate() {
        let zero = stored.zero(row, group, groups);
        let scale = stored.scales[row * groups + group];
        for (place, value) in values.iter_mut().enumerate() {
            let integer = form.integer(bytes, group * form.block + place);
            *value = round((integer - zero) * scale);
        }
    }
}
