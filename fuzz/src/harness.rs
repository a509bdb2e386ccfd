//! A small stack and counted memory for each input.
//!
//! The tests of `tests/tests/fuzz` include this file, too: they run the inputs that are kept.

#![expect(unsafe_code, reason = "a global allocator can only be written so")]

use std::{
    alloc::{GlobalAlloc, Layout, System},
    ptr::null_mut,
    sync::atomic::{AtomicUsize, Ordering::Relaxed},
};

/// Bytes that an input may take beside those that were in use before it.
#[derive(Clone, Copy)]
pub struct MemoryBound {
    /// For an empty input.
    pub fixed: usize,
    /// For each byte of an input.
    pub each: usize,
}

/// Runs `work` on an input of this many bytes, with a small stack.
///
/// An allocation beyond the bound fails, which ends the process.
///
/// # Panics
///
/// If `work` panics, or its allocations exceed the bound and it goes on all the same.
pub fn run_bounded<T: Send>(
    input_bytes: usize,
    bound: MemoryBound,
    work: impl FnOnce() -> T + Send,
) -> T {
    crate::on_small_stack(|| count_memory(input_bytes, bound, work))
}

fn count_memory<T>(input_bytes: usize, bound: MemoryBound, work: impl FnOnce() -> T) -> T {
    let before = LIVE.load(Relaxed);
    let limit = bound.fixed + bound.each * input_bytes;
    REFUSED.store(0, Relaxed);
    LIMIT.store(before + limit, Relaxed);
    let result = work();
    LIMIT.store(usize::MAX, Relaxed);
    let refused = REFUSED.load(Relaxed).saturating_sub(before);
    assert!(refused == 0, "{refused} bytes of memory for {input_bytes} of input, limit {limit}");
    result
}

/// The system's allocator, which counts live bytes and refuses those beyond a limit.
struct Counting;

static LIVE: AtomicUsize = AtomicUsize::new(0);
/// Live bytes that there would have been beyond the limit.
static REFUSED: AtomicUsize = AtomicUsize::new(0);
static LIMIT: AtomicUsize = AtomicUsize::new(usize::MAX);

#[global_allocator]
static ALLOCATOR: Counting = Counting;

impl Counting {
    /// Counts an allocation and makes it, unless it exceeds the limit.
    fn allocate(bytes: usize, allocate: impl FnOnce() -> *mut u8) -> *mut u8 {
        let live = LIVE.fetch_add(bytes, Relaxed) + bytes;
        let memory = if live <= LIMIT.load(Relaxed) { allocate() } else { refuse(live) };
        if memory.is_null() {
            LIVE.fetch_sub(bytes, Relaxed);
        }
        memory
    }
}

/// Most allocations are within the limit, so the peak is written here alone.
#[cold]
fn refuse(live: usize) -> *mut u8 {
    REFUSED.fetch_max(live, Relaxed);
    null_mut()
}

// SAFETY: calls go to the system's allocator unchanged, or give the null pointer of a failure.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's promises are those that the system's allocator requires.
        Self::allocate(layout.size(), || unsafe { System.alloc(layout) })
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: as above.
        Self::allocate(layout.size(), || unsafe { System.alloc_zeroed(layout) })
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        LIVE.fetch_sub(layout.size(), Relaxed);
        // SAFETY: as above.
        unsafe { System.dealloc(pointer, layout) }
    }
}
