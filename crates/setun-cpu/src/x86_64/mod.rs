//! Kernels of x86-64.

#![expect(unsafe_code, reason = "a prefetch takes a pointer")]

pub(crate) mod avx2;
pub(crate) mod avx512;
pub(crate) mod avx_vnni;
mod coarse_kernels;
pub(crate) mod f16;
mod screen_kernels;

use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};

use setun_ops::{screen_dot::SCREEN_COLUMNS, ternary::BLOCK_BYTES};

/// Bytes of a cache line.
const LINE: usize = 64;

const _: () = assert!(SCREEN_COLUMNS == BLOCK_BYTES, "both walk their rows in steps of a block");

/// Requests all lines of `bytes`.
#[inline(always)]
pub(crate) fn prefetch(bytes: &[u8]) {
    for line in bytes.chunks(LINE) {
        // SAFETY: a prefetch reads nothing that the program sees, whatever the address; every
        // x86-64 has it.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(line.as_ptr().cast()) };
    }
}

/// Requests the line of each row in which a block of packed codes, or of a screen's, begins, once
/// for the blocks of a line. Places beyond the rows do no harm.
#[inline(always)]
pub(crate) fn prefetch_blocks<const ROWS: usize>(rows: [&[u8]; ROWS], block: usize) {
    if (block * BLOCK_BYTES).is_multiple_of(LINE) {
        for row in rows {
            let line = row.as_ptr().wrapping_add(block * BLOCK_BYTES);
            // SAFETY: as above.
            unsafe { _mm_prefetch::<_MM_HINT_T0>(line.cast()) };
        }
    }
}
