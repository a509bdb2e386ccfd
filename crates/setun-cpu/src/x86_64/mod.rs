//! Kernels of x86-64.

#![expect(unsafe_code, reason = "a prefetch takes a pointer")]

pub(crate) mod avx2;
pub(crate) mod avx512;
pub(crate) mod avx_vnni;
pub(crate) mod f16;

use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};

use setun_ops::ternary::BLOCK_BYTES;

/// Bytes of a cache line.
const LINE: usize = 64;

/// Asks for all lines of `bytes`.
#[inline(always)]
pub(crate) fn prefetch(bytes: &[u8]) {
    for line in bytes.chunks(LINE) {
        // SAFETY: a prefetch reads nothing that the program sees, whatever the address; every
        // x86-64 has it.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(line.as_ptr().cast()) };
    }
}

/// Asks for the line of each row in which a block begins, once for the blocks of a line. Places
/// beyond the rows do no harm.
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

/// Asks for one of the parts of `bytes`, if there is as much.
#[inline(always)]
pub(crate) fn prefetch_part<const BYTES: usize>(bytes: &[u8], part: usize) {
    if let Some(part) = bytes.get(part * BYTES..(part + 1) * BYTES) {
        prefetch(part);
    }
}

/// Memory that a loop asks for, some lines in each of its steps.
pub(crate) struct Ahead {
    next: *const u8,
    lines: usize,
    step: usize, // lines of a step
}

impl Ahead {
    /// Most lines of a step.
    const MOST: usize = 4;

    /// All of `bytes` in so many steps, or as much as they may ask for.
    #[inline(always)]
    pub(crate) fn new(bytes: &[u8], steps: usize) -> Self {
        let lines = bytes.len().div_ceil(LINE);
        let step = lines.div_ceil(steps.max(1)).min(Self::MOST);
        Self { next: bytes.as_ptr(), lines, step }
    }

    /// Asks for the lines of a step.
    #[inline(always)]
    pub(crate) fn prefetch(&mut self) {
        let lines = self.step.min(self.lines);
        self.lines -= lines;
        for line in 0..Self::MOST {
            if line < lines {
                let line = self.next.wrapping_add(line * LINE);
                // SAFETY: as above.
                unsafe { _mm_prefetch::<_MM_HINT_T0>(line.cast()) };
            }
        }
        self.next = self.next.wrapping_add(lines * LINE);
    }
}
