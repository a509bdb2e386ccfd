//! Kernels of x86-64.

#![expect(unsafe_code, reason = "a prefetch takes a pointer")]

pub(crate) mod avx2;
pub(crate) mod avx512;
pub(crate) mod avx_vnni;

use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};

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
