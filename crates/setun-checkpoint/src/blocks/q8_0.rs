//! `Q8_0`: an `f16` and 32 integers of eight bits in 34 bytes.

use super::rows::{self, TableFormat};

pub(super) const FORM: TableFormat = TableFormat {
    bytes: 34,
    elements: 32,
    decode: |stored, values| {
        let (scale, stored) = stored.split_at(2);
        let scale = rows::scale(scale);
        for (value, byte) in values.iter_mut().zip(stored) {
            *value = f32::from(byte.cast_signed()) * scale;
        }
    },
};
