//! Large pages for weights, where the system has them for the asking.
//!
//! A step walks through all weights. With pages of 4 KiB it meets a new one every few dozen
//! loads, and on virtual machines finding one takes about as long as memory itself. To fill
//! them is dear as well: a large page is made in one go, 512 small ones one by one.

#![cfg_attr(
    all(target_os = "linux", not(miri)),
    expect(unsafe_code, reason = "advice on memory is a system call")
)]

use std::collections::TryReserveError;

/// Bytes of a large page of the processors that have been met.
const LARGE: usize = 2 << 20;

/// Fewer bytes than this ask for nothing: a step finds them in a cache.
const LEAST: usize = LARGE / 2;

/// Makes room for exactly `additional` elements, in large pages from the first touch on if the
/// system has them.
///
/// # Errors
///
/// If there is not so much memory.
pub fn reserve<T>(values: &mut Vec<T>, additional: usize) -> Result<(), TryReserveError> {
    values.try_reserve_exact(additional)?;
    let room = values.spare_capacity_mut();
    advise(room.as_ptr().addr(), size_of_val(room), Advice::When);
    Ok(())
}

/// Moves `values` into large pages, as far as they lie in small ones. The system may decline:
/// nothing depends on it.
pub fn settle<T>(values: &[T]) {
    advise(values.as_ptr().addr(), size_of_val(values), Advice::Now);
}

/// What is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Advice {
    /// Large pages when memory is touched for the first time.
    When,
    /// Large pages for what was touched already.
    Now,
}

/// Asks for whole large pages, those at both ends included: what follows or precedes is mostly
/// another weight.
#[cfg(all(target_os = "linux", not(miri)))]
fn advise(start: usize, bytes: usize, advice: Advice) {
    if bytes < LEAST {
        return;
    }
    let end = (start + bytes).next_multiple_of(LARGE);
    let start = start / LARGE * LARGE;
    let advice = match advice {
        Advice::When => libc::MADV_HUGEPAGE,
        Advice::Now => libc::MADV_COLLAPSE,
    };
    // SAFETY: neither advice changes what memory holds or who may use it, whatever lies in the
    // pages at both ends.
    let _declined =
        unsafe { libc::madvise(std::ptr::without_provenance_mut(start), end - start, advice) };
}

/// Elsewhere the system decides by itself.
#[cfg(not(all(target_os = "linux", not(miri))))]
fn advise(_: usize, _: usize, _: Advice) {}
