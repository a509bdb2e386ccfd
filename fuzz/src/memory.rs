//! Memory is counted, and bounded by the bytes that are read.

#![expect(unsafe_code, reason = "a global allocator can only be written so")]

use std::{
    alloc::{GlobalAlloc, Layout, System},
    sync::atomic::{AtomicUsize, Ordering::Relaxed},
};

/// Most bytes in memory for each byte of input: a matrix of one column has 32 bytes a row for the
/// quarter of a byte that stores it, and for a moment a matrix is there twice.
const FOR_EACH_BYTE: usize = 320;

/// Most bytes in memory for an empty input: threads, tables of a few positions.
const FOR_NONE: usize = 4 << 20;

/// What `work` gives, which may take memory for an input of this many bytes.
///
/// # Panics
///
/// If it takes more.
pub fn bounded<T>(input: usize, work: impl FnOnce() -> T) -> T {
    let before = LIVE.load(Relaxed);
    PEAK.store(before, Relaxed);
    let result = work();
    let (peak, limit) = (PEAK.load(Relaxed) - before, FOR_NONE + FOR_EACH_BYTE * input);
    assert!(peak <= limit, "{peak} bytes in memory for {input} bytes of input, limit {limit}");
    result
}

/// The system's allocator, with a count of live bytes and its highest value.
struct Counting;

static LIVE: AtomicUsize = AtomicUsize::new(0);
static PEAK: AtomicUsize = AtomicUsize::new(0);

#[global_allocator]
static ALLOCATOR: Counting = Counting;

impl Counting {
    fn grow(bytes: usize) {
        let live = LIVE.fetch_add(bytes, Relaxed) + bytes;
        PEAK.fetch_max(live, Relaxed);
    }
}

// SAFETY: every call goes to the system's allocator unchanged.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        Self::grow(layout.size());
        // SAFETY: the caller's promises are those that the system's allocator requires.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        Self::grow(layout.size());
        // SAFETY: as above.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        LIVE.fetch_sub(layout.size(), Relaxed);
        // SAFETY: as above.
        unsafe { System.dealloc(pointer, layout) }
    }
}
