//! Contents of the tensors of a random model.
//!
//! # Closed gates
//!
//! Where a share of closed gates is requested, the first [`ANCHORS`] columns of the residual
//! stream are *anchors*: every token's embedding has the same positive value there, and no layer
//! adds to them. So a gate row that is −1 at all anchors is closed for every token, one that is
//! +1 there is open for every token, and any other is closed for half of them. A share `c` of
//! closed gates takes `|2c − 1|` of the first kind (for `c` above ½) or of the second.

use std::sync::Arc;

use half::{bf16, f16};
use setun::checkpoint::Dtype;

use super::noise::{noise, share};

/// Columns of the residual stream that stay constant where gates are closed by design.
pub(crate) const ANCHORS: usize = 64;

/// Anchors of an embedding, 64 steps.
pub(super) const ANCHOR_VALUE: f32 = 64.0 * EMBEDDING_STEP;

/// Embeddings are whole multiples of this, so that `bf16` and `f16` hold them exactly.
pub(super) const EMBEDDING_STEP: f32 = 0.125;

/// Variance of an embedding: four digits of 0..=15 together, each of variance 21.25.
pub(super) const EMBEDDING_VARIANCE: f32 = 4.0 * 21.25 * EMBEDDING_STEP * EMBEDDING_STEP;

/// Standard deviation of a [`Content::Master`] in steps: the root of four times 21.25.
pub(super) const NORMAL_DEVIATION: f32 = 9.2195;

/// Mean magnitude of an embedding in steps: that of the sum of four digits of 0..=15, less 30.
pub(super) const MEAN_STEPS: f32 = 7.4458;

/// Bytes that one random number makes.
const BLOCK: usize = 8;

/// Bytes of a `bf16`.
const BF16_BYTES: usize = 2;

/// The rule for a tensor's bytes.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Content {
    /// `bf16`, one value throughout, or another for the anchors.
    Constant { value: f32, anchors: f32 },
    /// `bf16` `[vocab, columns]`: sums of four digits, nearly normal.
    Embedding { columns: usize, anchored: bool },
    /// Packed `u8` `[rows / 4, columns]`: −1, 0 and +1 equally often.
    Ternary { rows: usize, columns: usize, anchors: Anchors },
    /// Floats that are quantized at load: whole multiples of a step, nearly normal.
    Master { step: f32 },
    /// Floats between two numbers, each of 256 equally often.
    Uniform { low: f32, high: f32 },
    /// Floats that are −`scale`, 0 and +`scale`, equally often.
    FakeQuantized { scale: f32 },
    /// MLX's codes 0, 1 and 2, equally often.
    Codes,
    /// Scales near this number, each one of four. Codes have biases as well, which are the scales
    /// of the negative number: they have the key of the scales.
    GroupScales { scale: f32 },
    /// These numbers, each +1 or −1.
    Signs(Arc<[f32]>),
}

/// What a matrix of ternary weights does with anchors.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Anchors {
    /// Treats them like any other column.
    Ignored,
    /// Adds nothing to them: its rows there are zero.
    Kept,
    /// A share of its rows has one code at all anchors.
    Weighed { share: f64, code: u8 },
}

impl Content {
    /// Number of tensors back to the one whose key this one has.
    pub(super) fn back(&self) -> usize {
        usize::from(matches!(self, Self::GroupScales { scale } if *scale < 0.0))
    }

    /// Writes the bytes from `start` on of the tensor with this `key`. Floats are those of `bf16`
    /// in each type: exact in `f32`, rounded in `f16`.
    pub(super) fn fill(&self, key: u64, dtype: Dtype, start: usize, out: &mut [u8]) {
        match dtype {
            Dtype::F32 => self.widen(key, start, out, |value| value.to_f32().to_le_bytes()),
            Dtype::F16 => {
                self.widen(key, start, out, |value| f16::from_f32(value.to_f32()).to_le_bytes());
            }
            _ => self.fill_own(key, start, out),
        }
    }

    /// The same in a type of `WIDTH` bytes.
    fn widen<const WIDTH: usize>(
        &self,
        key: u64,
        start: usize,
        out: &mut [u8],
        convert: impl Fn(bf16) -> [u8; WIDTH],
    ) {
        let (first, end) = (start / WIDTH, (start + out.len()).div_ceil(WIDTH));
        let mut own = vec![0; BF16_BYTES * (end - first)];
        self.fill_own(key, BF16_BYTES * first, &mut own);
        let values = own.chunks_exact(BF16_BYTES).map(|b| bf16::from_le_bytes([b[0], b[1]]));
        let bytes = values.flat_map(convert).skip(start % WIDTH);
        out.iter_mut().zip(bytes).for_each(|(out, byte)| *out = byte);
    }

    /// The same in its own type: `u8` of packed codes, `bf16` of all else.
    fn fill_own(&self, key: u64, start: usize, out: &mut [u8]) {
        match *self {
            Self::Signs(ref signs) => {
                for (at, byte) in (start..).zip(out) {
                    *byte = bf16_bytes(signs.get(at / 2).copied().unwrap_or(1.0))[at % 2];
                }
            }
            Self::Constant { value, anchors } => {
                for (offset, byte) in out.iter_mut().enumerate() {
                    let at = start + offset;
                    let value = if at / 2 < ANCHORS { anchors } else { value };
                    *byte = bf16_bytes(value)[at % 2];
                }
            }
            Self::Embedding { columns, anchored } => {
                let random = |block| normal_block(noise(key, block), EMBEDDING_STEP);
                fill_blocks(start, out, random);
                if anchored {
                    let anchor = bf16_bytes(ANCHOR_VALUE);
                    for_each_row(start, out, 2 * columns, |_, from, row| {
                        for (at, byte) in (from..2 * ANCHORS).zip(row) {
                            *byte = anchor[at % 2];
                        }
                    });
                }
            }
            Self::Ternary { rows, columns, anchors } => {
                fill_blocks(start, out, |block| ternary_block(noise(key, block)));
                anchor_codes(anchors, key, rows / 4, (start, columns), out);
            }
            Self::Master { step } => {
                fill_blocks(start, out, |block| normal_block(noise(key, block), step));
            }
            Self::Uniform { low, high } => {
                fill_blocks(start, out, |block| uniform_block(noise(key, block), low, high));
            }
            Self::FakeQuantized { scale } => {
                fill_blocks(start, out, |block| scaled_block(noise(key, block), scale));
            }
            Self::Codes => fill_blocks(start, out, |block| ternary_block(noise(key, block))),
            Self::GroupScales { scale } => {
                fill_blocks(start, out, |block| scales_block(noise(key, block), scale));
            }
        }
    }
}

/// Imposes on packed codes what [`Anchors`] says. Byte row `r` holds the rows `i · quarter + r`.
fn anchor_codes(
    anchors: Anchors,
    key: u64,
    quarter: usize,
    (start, columns): (usize, usize),
    out: &mut [u8],
) {
    let row_key = noise(key, u64::MAX);
    for_each_row(start, out, columns, |byte_row, from, bytes| {
        for field in 0..4 {
            let row = field * quarter + byte_row;
            let (bytes, code) = match anchors {
                Anchors::Kept if row < ANCHORS => (&mut *bytes, 1),
                Anchors::Weighed { share: wanted, code }
                    if share(noise(row_key, row as u64)) < wanted =>
                {
                    let count = bytes.len().min(ANCHORS.saturating_sub(from));
                    (&mut bytes[..count], code)
                }
                _ => continue,
            };
            for byte in bytes {
                *byte = *byte & !(0b11 << (2 * field)) | (code << (2 * field));
            }
        }
    });
}

/// Cuts bytes into rows and calls with each row's index, its first byte's column and its bytes.
fn for_each_row(
    start: usize,
    mut out: &mut [u8],
    row_bytes: usize,
    mut visit: impl FnMut(usize, usize, &mut [u8]),
) {
    let mut at = start;
    while !out.is_empty() {
        let (row, from) = (at / row_bytes, at % row_bytes);
        let (bytes, rest) = out.split_at_mut(out.len().min(row_bytes - from));
        at += bytes.len();
        visit(row, from, bytes);
        out = rest;
    }
}

/// Writes the bytes from `start` on of a sequence of blocks.
fn fill_blocks(start: usize, out: &mut [u8], block: impl Fn(u64) -> [u8; BLOCK]) {
    let (first, skipped) = (start / BLOCK, start % BLOCK);
    let ahead = if skipped == 0 { 0 } else { out.len().min(BLOCK - skipped) };
    let (head, body) = out.split_at_mut(ahead);
    head.copy_from_slice(&block(first as u64)[skipped..skipped + ahead]);
    let first = first + usize::from(skipped > 0);
    for (index, bytes) in body.chunks_mut(BLOCK).enumerate() {
        bytes.copy_from_slice(&block((first + index) as u64)[..bytes.len()]);
    }
}

/// Four floats, nearly normal: sums of digits times a step.
#[inline]
fn normal_block(bits: u64, step: f32) -> [u8; BLOCK] {
    const NIBBLES: u64 = 0x0f0f_0f0f_0f0f_0f0f;
    let pairs = (bits & NIBBLES) + ((bits >> 4) & NIBBLES); // bytes of 0..=30
    let mut out = [0; BLOCK];
    for (pair, out) in pairs.to_le_bytes().chunks_exact(2).zip(out.chunks_exact_mut(2)) {
        let steps = i16::from(pair[0]) + i16::from(pair[1]) - 30;
        out.copy_from_slice(&bf16_bytes(f32::from(steps) * step));
    }
    out
}

/// Four floats: the codes of a byte of [`ternary_block`] times a scale.
#[inline]
fn scaled_block(bits: u64, scale: f32) -> [u8; BLOCK] {
    let [codes, ..] = ternary_block(bits);
    let mut out = [0; BLOCK];
    for (field, out) in out.chunks_exact_mut(BF16_BYTES).enumerate() {
        let value = [-scale, 0.0, scale][usize::from(codes >> (2 * field) & 3)];
        out.copy_from_slice(&bf16_bytes(value));
    }
    out
}

/// Four floats between two numbers.
#[inline]
fn uniform_block(bits: u64, low: f32, high: f32) -> [u8; BLOCK] {
    let mut out = [0; BLOCK];
    for (byte, out) in bits.to_le_bytes().into_iter().zip(out.chunks_exact_mut(BF16_BYTES)) {
        out.copy_from_slice(&bf16_bytes(low + (high - low) * f32::from(byte) / 255.0));
    }
    out
}

/// Four scales, each 7, 8, 9 or 10 eighths of a number.
#[inline]
fn scales_block(bits: u64, scale: f32) -> [u8; BLOCK] {
    const FACTORS: [f32; 4] = [0.875, 1.0, 1.125, 1.25];
    let mut out = [0; BLOCK];
    for (byte, out) in bits.to_le_bytes().into_iter().zip(out.chunks_exact_mut(BF16_BYTES)) {
        out.copy_from_slice(&bf16_bytes(scale * FACTORS[usize::from(byte & 3)]));
    }
    out
}

/// Eight bytes of four codes each: the number's eight first digits to the base 3⁴.
#[inline]
fn ternary_block(mut bits: u64) -> [u8; BLOCK] {
    let mut out = [0; BLOCK];
    for byte in &mut out {
        let digits = u128::from(bits) * 81;
        *byte = CODES[usize::from((digits >> 64).to_le_bytes()[0])];
        bits = low_bits(digits);
    }
    out
}

#[expect(clippy::cast_possible_truncation, reason = "the upper half is the digit")]
fn low_bits(bits: u128) -> u64 {
    bits as u64
}

/// The four codes of a number below 81.
const CODES: [u8; 81] = {
    let mut codes = [0; 81];
    let mut index = 0;
    while index < 81 {
        codes[index as usize] =
            (index % 3) | ((index / 3 % 3) << 2) | ((index / 9 % 3) << 4) | ((index / 27) << 6);
        index += 1;
    }
    codes
};

/// The upper half of a float: exact for what is written here, and cut for the rest.
fn bf16_bytes(value: f32) -> [u8; 2] {
    let [_, _, low, high] = value.to_le_bytes();
    [low, high]
}

#[cfg(test)]
mod tests;
