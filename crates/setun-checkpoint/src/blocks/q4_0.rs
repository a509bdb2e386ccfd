//! `Q4_0`: an `f16` and 32 integers of four bits in 18 bytes; the low half of a byte is of the
//! first sixteen, and 8 stands for zero.

use super::rows::{self, TableFormat};

pub(super) const FORM: TableFormat = TableFormat {
    bytes: 18,
    elements: 32,
    decode: |stored, values| {
        let (scale, stored) = stored.split_at(2);
        let scale = rows::scale(scale);
        let (low, high) = values.split_at_mut(16);
        for ((low, high), byte) in low.iter_mut().zip(high).zip(stored) {
            *low = (f32::from(byte & 15) - 8.0) * scale;
            *high = (f32::from(byte >> 4) - 8.0) * scale;
        }
    },
};
