//! Tables in blocks of integers, widened exactly: embeddings, heads, gains.

use setun_ops::aligned::Aligned;

use super::rows::{self, scale};
use crate::{dtype::Dtype, error::CheckpointError, side_by_side::side_by_side, tensor::Tensor};

/// The types of tables of integers, which are widened to `f32`.
pub const TABLES: [Dtype; 4] = [Dtype::Q8_0, Dtype::Q4_0, Dtype::Q4K, Dtype::Q6K];

/// How a block of integers is decoded.
struct TableFormat {
    bytes: usize,
    elements: usize,
    decode: fn(&[u8], &mut [f32]),
}

/// Blocks that one core takes.
const RUN: usize = 1024;

/// The elements of a tensor of one of [`TABLES`], each the product of its numbers in `f32`.
pub(crate) fn floats(tensor: &Tensor) -> Result<Aligned<f32>, CheckpointError> {
    let info = &tensor.info;
    let form = match info.dtype {
        Dtype::Q8_0 => &Q8_0,
        Dtype::Q4_0 => &Q4_0,
        Dtype::Q4K => &Q4_K,
        Dtype::Q6K => &Q6_K,
        found => {
            let (tensor, expected) = (info.name.clone(), TABLES.to_vec());
            return Err(CheckpointError::Dtype { tensor, expected, found });
        }
    };
    let stored = rows::stored_bytes(tensor)?;
    let values = Aligned::filled(0.0, info.elements());
    let mut values = values.map_err(|error| info.no_memory(error))?;
    let runs = stored.chunks(RUN * form.bytes).zip(values.chunks_mut(RUN * form.elements));
    side_by_side(runs.collect(), |(stored, values)| {
        let blocks = stored.chunks_exact(form.bytes).zip(values.chunks_exact_mut(form.elements));
        blocks.for_each(|(stored, values)| (form.decode)(stored, values));
    });
    Ok(values)
}

/// An `f16` and 32 integers of eight bits.
const Q8_0: TableFormat = TableFormat {
    bytes: 34,
    elements: 32,
    decode: |stored, values| {
        let (before, stored) = stored.split_at(2);
        let scale = scale(before);
        for (value, byte) in values.iter_mut().zip(stored) {
            *value = f32::from(byte.cast_signed()) * scale;
        }
    },
};

/// An `f16` and 32 integers of four bits; the low half of a byte is of the first sixteen, and 8
/// stands for zero.
const Q4_0: TableFormat = TableFormat {
    bytes: 18,
    elements: 32,
    decode: |stored, values| {
        let (before, stored) = stored.split_at(2);
        let scale = scale(before);
        let (low, high) = values.split_at_mut(16);
        for ((low, high), byte) in low.iter_mut().zip(high).zip(stored) {
            *low = (f32::from(byte & 15) - 8.0) * scale;
            *high = (f32::from(byte >> 4) - 8.0) * scale;
        }
    },
};

/// An `f16` for scales and one for minimums, eight of each of six bits in twelve bytes, and 256
/// integers of four bits; 32 of these share a scale and a minimum.
const Q4_K: TableFormat = TableFormat { bytes: 144, elements: 256, decode: decode_q4_k };

fn decode_q4_k(stored: &[u8], values: &mut [f32]) {
    let (before, rest) = stored.split_at(2);
    let (minimum, rest) = rest.split_at(2);
    let (sixes, codes) = rest.split_at(12);
    let (scale_of_all, minimum_of_all) = (scale(before), scale(minimum));
    for (run, values) in values.chunks_exact_mut(32).enumerate() {
        let (scale, minimum) = scale_and_minimum(sixes, run);
        let scale = scale_of_all * f32::from(scale);
        let minimum = minimum_of_all * f32::from(minimum);
        for (value, byte) in values.iter_mut().zip(&codes[run / 2 * 32..]) {
            *value = scale * f32::from(byte >> (run % 2 * 4) & 15) - minimum;
        }
    }
}

/// The first four scales and minimums have a byte each. The others have their low four bits
/// together in a byte, and the high two in the bytes of the first four.
fn scale_and_minimum(sixes: &[u8], run: usize) -> (u8, u8) {
    let (scale, minimum) = (sixes[run % 4], sixes[4 + run % 4]);
    if run < 4 {
        return (scale & 63, minimum & 63);
    }
    let low = sixes[4 + run];
    (low & 15 | scale >> 6 << 4, low >> 4 | minimum >> 6 << 4)
}

/// 256 integers of six bits, sixteen of them a scale of eight bits, and an `f16` for all; 32 stands
/// for zero.
const Q6_K: TableFormat = TableFormat { bytes: 210, elements: 256, decode: decode_q6_k };

fn decode_q6_k(stored: &[u8], values: &mut [f32]) {
    const LOW: usize = 128;
    const HIGH: usize = 64;
    const SCALES: usize = 16;
    let (low, rest) = stored.split_at(LOW);
    let (high, rest) = rest.split_at(HIGH);
    let (scales, whole) = rest.split_at(SCALES);
    let scale = scale(whole);
    let halves = low.chunks_exact(LOW / 2).zip(high.chunks_exact(HIGH / 2));
    let halves = halves.zip(scales.chunks_exact(SCALES / 2));
    for (((low, high), scales), values) in halves.zip(values.chunks_exact_mut(128)) {
        for (index, value) in values.iter_mut().enumerate() {
            let (quarter, within) = (index / 32, index % 32);
            let nibble = low[quarter % 2 * 32 + within] >> (4 * (quarter / 2)) & 15;
            let top = high[within] >> (2 * quarter) & 3;
            let sub_scale = f32::from(scales[index / 16].cast_signed());
            *value = scale * sub_scale * (f32::from(nibble | top << 4) - 32.0);
        }
    }
}
