//! Rows of blocks, decoded by all cores.

use half::f16;
use setun_ops::{
    aligned::Aligned,
    ternary::{BLOCK_BYTES, BLOCK_COLUMNS, PLANE_COLUMNS, Scales, first_three, row_bytes},
};

use crate::{
    error::CheckpointError,
    scales::fewest,
    side_by_side::{RUN_ROWS, side_by_side},
    tensor::{Tensor, TensorData, TensorInfo},
};

/// How a type's rows are decoded.
pub(super) struct RowFormat {
    /// Columns that share a scale; none where a row has one.
    pub(super) group: Option<usize>,
    /// Bytes after all rows, which begin with the scale of the whole tensor; 0 where rows have their
    /// scales with them.
    pub(super) tail: usize,
    /// From the bytes of a row to a packed row and the scale of each group. A code that is none
    /// is copied or left as 3: it is looked for afterwards.
    pub(super) decode: fn(&[u8], &mut PackedRow<'_>, &mut [f32]),
}

/// A row of [`setun_ops::ternary`] that is filled by blocks of 128 columns.
pub(super) struct PackedRow<'a> {
    pub(super) bytes: &'a mut [u8],
    pub(super) columns: usize,
}

impl PackedRow<'_> {
    /// Packs the codes of a block of at most 128 columns; the rest of it is padding.
    pub(super) fn set(&mut self, block: usize, codes: &[u8]) {
        let mut padded = [1; BLOCK_COLUMNS];
        padded[..codes.len()].copy_from_slice(codes);
        let (first, rest) = padded.split_at(PLANE_COLUMNS);
        let (second, rest) = rest.split_at(PLANE_COLUMNS);
        let (third, fourth) = rest.split_at(PLANE_COLUMNS);
        let out = &mut self.bytes[block * BLOCK_BYTES..][..BLOCK_BYTES];
        for (index, out) in out.iter_mut().enumerate() {
            *out = first[index] | second[index] << 2 | third[index] << 4 | fourth[index] << 6;
        }
    }
}

/// Rows that one core takes.
struct Run<'a> {
    first: usize,
    stored: &'a [u8],
    packed: &'a mut [u8],
    scales: &'a mut [f32],
    failed: &'a mut Option<CheckpointError>,
}

/// Codes and as few scales as say the same, of a matrix in rows of blocks.
pub(super) fn unpack(
    tensor: &Tensor,
    form: &RowFormat,
) -> Result<(Aligned<u8>, Scales), CheckpointError> {
    let (codes, scales) = unpack_all(tensor, form)?;
    let (_, columns) = tensor.info.expect_matrix()?;
    let width = form.group.unwrap_or(columns);
    Ok((codes, fewest(&scales, columns.div_ceil(width), width, columns)))
}

/// Codes and the scale of each block or row, as the type has them.
pub(super) fn unpack_as_stored(
    tensor: &Tensor,
    form: &RowFormat,
) -> Result<(Aligned<u8>, Scales), CheckpointError> {
    let (codes, mut values) = unpack_all(tensor, form)?;
    values.iter_mut().filter(|scale| **scale == 0.0).for_each(|scale| *scale = 1.0);
    Ok(match form.group {
        None => (codes, Scales::Rows(values)),
        Some(columns) => (codes, Scales::ColumnGroups { columns, values }),
    })
}

/// Codes, and the scale of each row or group.
fn unpack_all(
    tensor: &Tensor,
    form: &RowFormat,
) -> Result<(Aligned<u8>, Vec<f32>), CheckpointError> {
    let info = &tensor.info;
    let (rows, columns) = info.expect_matrix()?;
    let bytes = stored_bytes(tensor)?;
    let (stored, tail) = bytes.split_at(bytes.len() - form.tail);
    let width = form.group.unwrap_or(columns);
    let groups = columns.div_ceil(width.max(1)).max(1);
    let mut codes = info.zeroed(rows, row_bytes(columns))?;
    let scale = tail.first_chunk().map_or(0.0, |bytes| f32::from_le_bytes(*bytes));
    let mut scales = vec![scale; rows * groups];
    let mut failures: Vec<_> = (0..rows.div_ceil(RUN_ROWS)).map(|_| None).collect();
    let stored_row = (stored.len() / rows.max(1)).max(1);
    let stored = stored.chunks(RUN_ROWS * stored_row);
    let packed = codes.chunks_mut((RUN_ROWS * row_bytes(columns)).max(1));
    let of_run = stored.zip(packed).zip(scales.chunks_mut(RUN_ROWS * groups).zip(&mut failures));
    let runs = of_run.enumerate().map(|(index, ((stored, packed), (scales, failed)))| Run {
        first: index * RUN_ROWS,
        stored,
        packed,
        scales,
        failed,
    });
    side_by_side(runs.collect(), |run| {
        let mut row_scales = run.scales.chunks_exact_mut(groups);
        let packed = run.packed.chunks_exact_mut(row_bytes(columns).max(1));
        for ((row, stored), packed) in
            (run.first..).zip(run.stored.chunks_exact(stored_row)).zip(packed)
        {
            let scales = row_scales.next().unwrap_or_default();
            let mut packed = PackedRow { bytes: packed, columns };
            (form.decode)(stored, &mut packed, scales);
            if let Some(failure) = check_row(info, row, &mut packed, scales, width) {
                *run.failed = Some(failure);
                return;
            }
        }
    });
    match failures.into_iter().flatten().next() {
        Some(failure) => Err(failure),
        None => Ok((codes, scales)),
    }
}

/// Every code is one of a weight, every scale finite; weights of a scale of zero become zero.
fn check_row(
    info: &TensorInfo,
    row: usize,
    packed: &mut PackedRow<'_>,
    scales: &[f32],
    width: usize,
) -> Option<CheckpointError> {
    if let Some(column) = bad_code(packed.bytes) {
        return Some(info.not_ternary(row, column));
    }
    if let Some(scale) = scales.iter().find(|scale| !scale.is_finite()) {
        return Some(info.bad_scale(*scale));
    }
    let zeros = scales.iter().enumerate().filter(|(_, scale)| **scale == 0.0);
    for (group, _) in zeros {
        for column in group * width..packed.columns.min((group + 1) * width) {
            let (block, within) = (column / BLOCK_COLUMNS, column % BLOCK_COLUMNS);
            let shift = 2 * (within / PLANE_COLUMNS);
            let byte = &mut packed.bytes[block * BLOCK_BYTES + within % PLANE_COLUMNS];
            *byte = *byte & !(0b11 << shift) | 1 << shift;
        }
    }
    None
}

/// The column of a code 3 in a packed row, if there is one.
pub(crate) fn bad_code(packed: &[u8]) -> Option<usize> {
    first_three(packed)?;
    (0..packed.len() * 4).find(|&column| setun_ops::ternary::code_at(packed, column) == 3)
}

/// The bytes of a tensor, as many as its type and shape need.
pub(super) fn stored_bytes(tensor: &Tensor) -> Result<&[u8], CheckpointError> {
    let info = &tensor.info;
    match &tensor.data {
        TensorData::Bytes(bytes)
            if info.elements() > 0 && info.dtype.bytes(&info.shape) == Some(bytes.len() as u64) =>
        {
            Ok(bytes)
        }
        _ => Err(info.rank("as many bytes as its type and shape need")),
    }
}

/// Packs a block of 128 codes of which four neighbours share a byte, the first lowest.
///
/// Words of four bytes are made at once: a loop over them becomes vector instructions.
pub(crate) fn set_neighbours(neighbours: &[u8; BLOCK_BYTES], packed: &mut [u8]) {
    const WORDS: usize = BLOCK_BYTES / 4;
    const LOW: u32 = 0x0303_0303;
    let (words, _) = packed.as_chunks_mut::<4>();
    for (place, word) in words.iter_mut().enumerate().take(WORDS) {
        let of_plane = |plane: usize| {
            let byte = u32::from(neighbours[plane * WORDS + place]);
            ((byte | byte << 6 | byte << 12 | byte << 18) & LOW) << (2 * plane)
        };
        *word = (of_plane(0) | of_plane(1) | of_plane(2) | of_plane(3)).to_le_bytes();
    }
}

/// A scale of two bytes.
pub(super) fn scale(bytes: &[u8]) -> f32 {
    match bytes {
        [low, high] => f16::from_le_bytes([*low, *high]).to_f32(),
        _ => f32::NAN,
    }
}

/// Blocks of 64 weights in 16 bytes, of which byte `j` holds weights `j`, `j + 16`, `j + 32` and
/// `j + 48`; `shifts` are their places in it.
pub(super) fn decode_strided(stored: &[u8], packed: &mut PackedRow<'_>, shifts: [u8; 4]) {
    const BYTES: usize = 16;
    for (block, stored) in stored.chunks(2 * BYTES).enumerate() {
        let mut codes = [1; BLOCK_COLUMNS];
        for (half, stored) in stored.chunks_exact(BYTES).enumerate() {
            for (index, byte) in stored.iter().enumerate() {
                for (field, shift) in shifts.into_iter().enumerate() {
                    codes[half * 4 * BYTES + field * BYTES + index] = byte >> shift & 0b11;
                }
            }
        }
        packed.set(block, &codes[..stored.len() * 4]);
    }
}

/// The five digits of a byte in base 3, the highest first, as 0, 1 or 2. The byte is
/// `ceil(v · 256 / 243)` of the number v that they make.
pub(super) fn trit(byte: u8, digit: usize) -> u8 {
    const POWERS: [u8; 5] = [1, 3, 9, 27, 81];
    let rest = byte.wrapping_mul(POWERS[digit]);
    (u16::from(rest) * 3).to_be_bytes()[0]
}
