//! Large pages for weights, where the system has them for the asking.
//!
//! A step walks through all weights. With pages of 4 KiB it meets a new one every few dozen
//! loads, and on virtual machines finding one takes about as long as memory itself.

#![cfg_attr(target_os = "linux", expect(unsafe_code, reason = "advice on memory is a system call"))]

/// Asks the system to keep `values` in large pages. It may decline: nothing depends on it.
#[cfg(target_os = "linux")]
pub(crate) fn advise<T>(values: &[T]) {
    const PAGE: usize = 4096;
    const LARGE: usize = 2 << 20;
    if size_of_val(values) < LARGE {
        return;
    }
    let within = values.as_ptr().addr() % PAGE;
    let start = values.as_ptr().cast::<u8>().wrapping_sub(within).cast_mut().cast();
    let len = (within + size_of_val(values)) / PAGE * PAGE;
    for advice in [libc::MADV_HUGEPAGE, libc::MADV_COLLAPSE] {
        // SAFETY: neither advice changes what the memory holds or who may use it, whatever lies
        // in the pages at both ends.
        let _declined = unsafe { libc::madvise(start, len, advice) };
    }
}

/// Elsewhere the system decides by itself.
#[cfg(not(target_os = "linux"))]
pub(crate) fn advise<T>(_values: &[T]) {}
