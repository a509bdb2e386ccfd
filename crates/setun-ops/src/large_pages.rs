//! Large pages for weights, where the system has them for the asking.
//!
//! A step walks through all weights. With pages of 4 KiB it meets a new one every few dozen
//! loads, and on virtual machines finding one takes about as long as memory itself.
//!
//! Vectors that an allocator maps one by one, as glibc does from 32 MiB on at the latest, are made
//! of large pages when they are first touched: those at both ends of a vector are all that is
//! lost. Smaller ones lie side by side in a heap, and many are shorter than three large pages.
//! Asked for before, each would become a region of its own, and no page spans two. So they are
//! moved into large pages once they are filled, those that they share with neighbours included:
//! alignment would not cover more.

#![cfg_attr(
    all(target_os = "linux", not(miri)),
    expect(unsafe_code, reason = "advice on memory is a system call")
)]

use std::collections::TryReserveError;

/// Bytes of a large page of the processors that have been met.
const LARGE: usize = 2 << 20;

/// Bytes from which on a vector is mapped by itself.
const MAPPED: usize = 32 << 20;

/// Fewer bytes than this are left as they are: a step finds them in a cache.
const LEAST: usize = LARGE / 8;

/// Makes room for exactly `additional` elements; much room is asked for in large pages.
///
/// # Errors
///
/// If there is not so much memory.
pub fn reserve<T>(values: &mut Vec<T>, additional: usize) -> Result<(), TryReserveError> {
    values.try_reserve_exact(additional)?;
    let room = values.spare_capacity_mut();
    if size_of_val(room) >= MAPPED {
        advise(room, Advice::When);
    }
    Ok(())
}

/// Moves `values` into large pages, as far as they lie in small ones. The system may decline:
/// nothing depends on it.
pub fn settle<T>(values: &[T]) {
    if size_of_val(values) >= LEAST {
        advise(values, Advice::Now);
    }
}

/// What is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Advice {
    /// Large pages when memory is touched for the first time.
    When,
    /// Large pages for what was touched already.
    Now,
}

/// Asks for whole large pages, those at both ends included: what lies beside a weight is mostly
/// another.
#[cfg(all(target_os = "linux", not(miri)))]
fn advise<T>(values: &[T], advice: Advice) {
    let start = values.as_ptr().addr() / LARGE * LARGE;
    let end = (values.as_ptr().addr() + size_of_val(values)).next_multiple_of(LARGE);
    let advice = match advice {
        Advice::When => libc::MADV_HUGEPAGE,
        Advice::Now => libc::MADV_COLLAPSE,
    };
    let (start, len) = (std::ptr::without_provenance_mut(start), end - start);
    // SAFETY: neither advice changes what memory holds or who may use it, whatever lies in the
    // pages at both ends.
    let _declined = unsafe { libc::madvise(start, len, advice) };
}

/// Elsewhere the system decides by itself.
#[cfg(not(all(target_os = "linux", not(miri))))]
fn advise<T>(_: &[T], _: Advice) {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_stay_when_they_are_moved() {
        let bytes = |len: usize| (0..len).map(|at| u8::try_from(at % 251).unwrap());
        for len in [0, 1, LEAST, 9 * LEAST + 12_345] {
            let mut values: Vec<u8> = vec![];
            reserve(&mut values, len).unwrap();
            assert!(values.capacity() >= len);
            values.extend(bytes(len));
            settle(&values);
            settle(&values[len / 3..]);
            assert!(values.iter().copied().eq(bytes(len)), "{len} bytes");
        }
    }

    #[test]
    fn memory_that_is_not_there_is_an_error() {
        let mut values = vec![1_u64];
        assert!(reserve(&mut values, usize::MAX / 16).is_err());
        assert_eq!(values, [1]);
    }
}
