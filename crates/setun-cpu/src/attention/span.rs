//! Neighbouring keys or values, and what is known before they are met.

use std::slice::ChunksExact;

use half::f16;
use setun_ops::attention::SPAN;

use crate::scratch::TILE_QUERIES;

/// Scores or weights of some queries over a span.
pub(super) type SpanScores = [[f32; SPAN]; TILE_QUERIES];

/// Whether a span is widened before queries meet it, however few they are. A module of WebAssembly
/// then has the code that meets them for one kind of element instead of three.
pub(super) const WIDENED_FIRST: bool = cfg!(target_arch = "wasm32");

/// Memory to widen a span in, where that saves doing it again for other queries.
pub(super) fn memory_to_widen(queries: usize, span: &mut [f32]) -> Option<&mut [f32]> {
    (WIDENED_FIRST || queries > TILE_QUERIES).then_some(span)
}

/// Keys or values `[len, d]` that are neighbours in memory.
#[derive(Clone, Copy)]
pub(super) enum Vectors<'a> {
    F32(&'a [f32]),
    F16(&'a [f16]),
    Int8(&'a [i8]),
}

/// Evaluates `$run` with the elements of [`Vectors`] as `$values`.
macro_rules! with_elements {
    ($vectors:expr, $values:ident => $run:expr) => {
        match $vectors {
            $crate::attention::span::Vectors::F32($values) => $run,
            $crate::attention::span::Vectors::F16($values) => $run,
            $crate::attention::span::Vectors::Int8($values) => $run,
        }
    };
}

/// The same of what queries meet.
macro_rules! with_met_elements {
    ($vectors:expr, $values:ident => $run:expr) => {
        match $vectors {
            $crate::attention::span::Vectors::F32($values) => $run,
            _ if $crate::attention::span::WIDENED_FIRST => unreachable!("they are widened first"),
            $crate::attention::span::Vectors::F16($values) => $run,
            $crate::attention::span::Vectors::Int8($values) => $run,
        }
    };
}
pub(super) use with_met_elements;

impl<'a> Vectors<'a> {
    pub(super) fn bytes(self) -> &'a [u8] {
        with_elements!(self, values => bytemuck::cast_slice(values))
    }

    pub(super) fn elements(self) -> usize {
        with_elements!(self, values => values.len())
    }
}

/// Requests of memory for what lies ahead, part by part.
pub(super) struct Prefetch<'a>(ChunksExact<'a, u8>);

impl<'a> Prefetch<'a> {
    /// In parts of `values` elements of type `T`.
    #[inline(always)]
    pub(super) fn in_parts<T>(ahead: &'a [u8], values: usize) -> Self {
        Self(ahead.chunks_exact(values * size_of::<T>()))
    }

    /// Requests the next part, if there is one.
    #[inline(always)]
    pub(super) fn next_part(&mut self) {
        if let Some(part) = self.0.next() {
            #[cfg(target_arch = "x86_64")]
            crate::x86_64::prefetch(part);
            #[cfg(not(target_arch = "x86_64"))]
            let _ = part;
        }
    }
}
