//! Requests of memory that will be needed soon.
//!
//! A core of AMD's Zen waits for two dozen lines of its first-level cache at most. Lines that come
//! from memory keep these places for 100 ns and more, which is 15 GB/s, while loads find none.
//! What is requested for the second level leaves them free. On Intel's cores requests are for the
//! first level, as they were measured.

#![expect(unsafe_code, reason = "a prefetch takes a pointer")]

use std::{
    arch::x86_64::{__cpuid, _MM_HINT_T0, _MM_HINT_T1, _mm_prefetch},
    sync::atomic::{AtomicBool, Ordering},
};

use setun_ops::{screen_dot::SCREEN_COLUMNS, ternary::BLOCK_BYTES};

/// Bytes of a cache line.
const LINE: usize = 64;

const _: () = assert!(SCREEN_COLUMNS == BLOCK_BYTES, "both walk their rows in steps of a block");

/// Whether requests are for the second-level cache.
static FOR_SECOND_LEVEL: AtomicBool = AtomicBool::new(false);

/// Finds out which cache requests are for.
pub(crate) fn choose_cache() {
    if cfg!(miri) {
        return; // It has no `cpuid`.
    }
    let id = __cpuid(0);
    let vendor = [id.ebx, id.edx, id.ecx].map(u32::to_le_bytes);
    let is_zen = is_zen(vendor.as_flattened(), __cpuid(1).eax);
    FOR_SECOND_LEVEL.store(is_zen, Ordering::Relaxed);
}

/// Whether a processor is of AMD's family 17h or a later one, or Hygon's of the same design.
fn is_zen(vendor: &[u8], version: u32) -> bool {
    let family = (version >> 8 & 0xf) + (version >> 20 & 0xff);
    [&b"AuthenticAMD"[..], b"HygonGenuine"].contains(&vendor) && family >= 0x17
}

/// How many tiles of rows ahead rows are requested.
pub(crate) fn tiles_ahead() -> usize {
    if FOR_SECOND_LEVEL.load(Ordering::Relaxed) { 4 } else { 1 }
}

/// Requests all lines of `bytes`.
#[inline(always)]
pub(crate) fn prefetch(bytes: &[u8]) {
    let requests = Requests::new();
    for line in bytes.chunks(LINE) {
        requests.lines([line], 0);
    }
}

/// Requests the line of each row in which a block of packed codes, or of a screen's, begins, once
/// for the blocks of a line. Places beyond the rows do no harm.
#[inline(always)]
pub(crate) fn prefetch_blocks<const ROWS: usize>(rows: [&[u8]; ROWS], block: usize) {
    if (block * BLOCK_BYTES).is_multiple_of(LINE) {
        Requests::new().lines(rows, block * BLOCK_BYTES);
    }
}

/// The cache level of requests. A loop reads it once, and not for each line.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Requests {
    for_second_level: bool,
}

impl Requests {
    #[inline(always)]
    pub(crate) fn new() -> Self {
        Self { for_second_level: FOR_SECOND_LEVEL.load(Ordering::Relaxed) }
    }

    /// Requests the line of each row that holds its byte `at`. A place after the row's end does no harm.
    #[inline(always)]
    pub(crate) fn lines<const ROWS: usize>(self, rows: [&[u8]; ROWS], at: usize) {
        // SAFETY: a prefetch reads nothing that the program sees, whatever the address; every x86-64
        // has it.
        unsafe {
            if self.for_second_level {
                for row in rows {
                    _mm_prefetch::<_MM_HINT_T1>(row.as_ptr().wrapping_add(at).cast());
                }
            } else {
                for row in rows {
                    _mm_prefetch::<_MM_HINT_T0>(row.as_ptr().wrapping_add(at).cast());
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processors_are_told_apart() {
        let (zen_4, zen_3, dhyana) = (0x00a1_0f11, 0x00a2_0f10, 0x0090_0f02);
        assert!(is_zen(b"AuthenticAMD", zen_4));
        assert!(is_zen(b"AuthenticAMD", zen_3));
        assert!(is_zen(b"HygonGenuine", dhyana));
        let (bulldozer, sapphire_rapids) = (0x0060_0f12, 0x0008_06f8);
        assert!(!is_zen(b"AuthenticAMD", bulldozer));
        assert!(!is_zen(b"GenuineIntel", sapphire_rapids));
    }

    #[test]
    fn requests_do_no_harm_wherever_they_go() {
        let bytes = [1; 3 * LINE + 5];
        prefetch(&bytes);
        prefetch_blocks([&bytes, &[]], 1000);
        assert_eq!(bytes, [1; 3 * LINE + 5]);
    }
}
