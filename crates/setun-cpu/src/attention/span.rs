//! Neighbouring keys or values, and what is known before they are met.

use half::f16;
use setun_ops::attention::SPAN;

use crate::scratch::TILE_QUERIES;

/// Scores or weights of some queries over a span.
pub(super) type SpanScores = [[f32; SPAN]; TILE_QUERIES];

/// Keys or values `[len, d]` that are neighbours in memory.
#[derive(Clone, Copy)]
pub(super) enum Vectors<'a> {
    F32(&'a [f32]),
    F16(&'a [f16]),
    Int8(&'a [i8]),
}

impl<'a> Vectors<'a> {
    pub(super) fn bytes(self) -> &'a [u8] {
        match self {
            Self::F32(values) => bytemuck::cast_slice(values),
            Self::F16(values) => bytemuck::cast_slice(values),
            Self::Int8(values) => bytemuck::cast_slice(values),
        }
    }

    pub(super) fn elements(self) -> usize {
        match self {
            Self::F32(values) => values.len(),
            Self::F16(values) => values.len(),
            Self::Int8(values) => values.len(),
        }
    }
}

/// Asks memory for one of the parts of what lies ahead, if there is as much.
#[inline(always)]
pub(super) fn ask_for_part(ahead: &[u8], part: usize, bytes: usize) {
    #[cfg(target_arch = "x86_64")]
    if let Some(part) = ahead.get(part * bytes..(part + 1) * bytes) {
        crate::x86_64::prefetch(part);
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = (ahead, part, bytes);
}
