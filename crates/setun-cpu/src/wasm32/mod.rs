//! Kernels of WebAssembly.

#[cfg(target_feature = "relaxed-simd")]
pub(crate) mod relaxed;
#[cfg(target_feature = "simd128")]
#[cfg_attr(
    all(target_feature = "relaxed-simd", not(feature = "testing")),
    allow(dead_code, reason = "a relaxed build takes parts of it, and has its own level alone")
)]
pub(crate) mod simd128;

use std::hint::black_box;

use setun_ops::ternary::BLOCK_BYTES;

/// Bytes of a cache line.
const LINE: usize = 64;

/// Reads a byte of each line of `bytes`, so that the line comes nearer. WebAssembly has no
/// prefetch, but nothing waits for a value that is not used.
#[inline(always)]
pub(crate) fn touch(bytes: &[u8]) {
    for line in bytes.chunks(LINE) {
        black_box(line[0]);
    }
}

/// Touches the line of each row in which a block begins, once for the blocks of a line.
#[inline(always)]
pub(crate) fn touch_blocks<const ROWS: usize>(rows: [&[u8]; ROWS], block: usize) {
    if (block * BLOCK_BYTES).is_multiple_of(LINE) {
        for row in rows {
            black_box(row.get(block * BLOCK_BYTES).copied());
        }
    }
}
