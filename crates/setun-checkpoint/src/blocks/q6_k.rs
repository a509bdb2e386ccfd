//! `Q6_K`: 256 integers of six bits in 210 bytes, sixteen of them a scale of eight bits, and an
//! `f16` for all; 32 stands for zero.

use super::rows::{self, TableFormat};

const LOW: usize = 128;
const HIGH: usize = 64;
const SCALES: usize = 16;

pub(super) const FORM: TableFormat = TableFormat {
    bytes: LOW + HIGH + SCALES + 2,
    elements: 256,
    decode: |stored, values| {
        let (low, rest) = stored.split_at(LOW);
        let (high, rest) = rest.split_at(HIGH);
        let (scales, scale) = rest.split_at(SCALES);
        let scale = rows::scale(scale);
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
    },
};
