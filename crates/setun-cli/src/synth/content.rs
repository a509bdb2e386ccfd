//! Contents of the tensors of a random model.
//!
//! # Closed gates
//!
//! Where a share of closed gates is requested, the first [`ANCHORS`] columns of the residual
//! stream are *anchors*: every token's embedding has the same positive value there, and no layer
//! adds to them. So a gate row that is −1 at all anchors is closed for every token, one that is
//! +1 there is open for every token, and any other is closed for half of them. A share `c` of
//! closed gates takes `|2c − 1|` of the first kind (for `c` above ½) or of the second.

use super::noise::{noise, share};

/// Columns of the residual stream that stay constant where gates are closed by design.
pub(crate) const ANCHORS: usize = 64;

/// Anchors of an embedding, 64 steps.
pub(super) const ANCHOR_VALUE: f32 = 64.0 * EMBEDDING_STEP;

/// Embeddings are whole multiples of this, so that `bf16` and `f16` hold them exactly.
pub(super) const EMBEDDING_STEP: f32 = 0.125;

/// Variance of an embedding: four digits of 0..=15 together, each of variance 21.25.
pub(super) const EMBEDDING_VARIANCE: f32 = 4.0 * 21.25 * EMBEDDING_STEP * EMBEDDING_STEP;

/// Bytes that one random number makes.
const BLOCK: usize = 8;

/// The rule for a tensor's bytes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Content {
    /// `bf16`, one value throughout, or another for the anchors.
    Constant { value: f32, anchors: f32 },
    /// `bf16` `[vocab, columns]`: sums of four digits, nearly normal.
    Embedding { columns: usize, anchored: bool },
    /// Packed `u8` `[rows / 4, columns]`: −1, 0 and +1 equally often.
    Ternary { rows: usize, columns: usize, anchors: Anchors },
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
    /// Writes the bytes from `start` on of the tensor with this `key`.
    pub(super) fn fill(&self, key: u64, start: usize, out: &mut [u8]) {
        match *self {
            Self::Constant { value, anchors } => {
                for (offset, byte) in out.iter_mut().enumerate() {
                    let at = start + offset;
                    let value = if at / 2 < ANCHORS { anchors } else { value };
                    *byte = bf16_bytes(value)[at % 2];
                }
            }
            Self::Embedding { columns, anchored } => {
                fill_blocks(start, out, |block| embedding_block(noise(key, block)));
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

/// Four embeddings.
#[inline]
fn embedding_block(bits: u64) -> [u8; BLOCK] {
    const NIBBLES: u64 = 0x0f0f_0f0f_0f0f_0f0f;
    let pairs = (bits & NIBBLES) + ((bits >> 4) & NIBBLES); // bytes of 0..=30
    let mut out = [0; BLOCK];
    for (pair, out) in pairs.to_le_bytes().chunks_exact(2).zip(out.chunks_exact_mut(2)) {
        let steps = i16::from(pair[0]) + i16::from(pair[1]) - 30;
        out.copy_from_slice(&bf16_bytes(f32::from(steps) * EMBEDDING_STEP));
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
mod tests {
    use half::{bf16, f16};

    use super::*;

    const ALL: [Content; 5] = [
        Content::Constant { value: 1.0, anchors: 3.5 },
        Content::Embedding { columns: 100, anchored: true },
        Content::Ternary { rows: 256, columns: 96, anchors: Anchors::Ignored },
        Content::Ternary { rows: 256, columns: 96, anchors: Anchors::Kept },
        Content::Ternary {
            rows: 256,
            columns: 96,
            anchors: Anchors::Weighed { share: 0.5, code: 0 },
        },
    ];

    #[test]
    fn bytes_do_not_depend_on_how_they_are_read() {
        for content in ALL {
            let mut whole = vec![0; 4096];
            content.fill(5, 0, &mut whole);
            for (start, step) in [(0, 1), (3, 7), (8, 64), (101, 1000)] {
                let mut pieces = vec![0; whole.len() - start];
                for (index, piece) in pieces.chunks_mut(step).enumerate() {
                    content.fill(5, start + index * step, piece);
                }
                assert_eq!(pieces, whole[start..], "{content:?} from {start} by {step}");
            }
        }
    }

    #[test]
    fn codes_are_ternary_and_equally_often() {
        let mut bytes = vec![0; 30_000];
        ALL[2].fill(1, 0, &mut bytes);
        let mut counts = [0; 4];
        for byte in bytes {
            (0..4).for_each(|field| counts[usize::from(byte >> (2 * field) & 3)] += 1);
        }
        assert_eq!(counts[3], 0);
        assert!(counts[..3].iter().all(|count| (39_000..41_000).contains(count)), "{counts:?}");
    }

    #[test]
    fn embeddings_are_exact_in_both_half_types() {
        let mut bytes = vec![0; 80_000];
        Content::Embedding { columns: 100, anchored: false }.fill(1, 0, &mut bytes);
        let values: Vec<f32> =
            bytes.chunks_exact(2).map(|b| bf16::from_le_bytes([b[0], b[1]]).to_f32()).collect();
        assert!(values.iter().all(|&value| f16::from_f32(value).to_f32() == value));
        let count = f32::from(u16::try_from(values.len()).unwrap());
        let mean = values.iter().sum::<f32>() / count;
        let variance = values.iter().map(|x| x * x).sum::<f32>() / count;
        assert!(mean.abs() < 0.02, "{mean}");
        assert!((variance / EMBEDDING_VARIANCE - 1.0).abs() < 0.03, "{variance}");
    }

    #[test]
    fn kept_anchors_get_nothing() {
        let mut bytes = vec![0; 64 * 96];
        ALL[3].fill(1, 0, &mut bytes);
        assert!(bytes.iter().all(|byte| byte & 3 == 1), "the first quarter is all anchors");
        assert!(bytes.iter().any(|byte| byte >> 2 & 3 != 1), "the second has none");
    }
}
