//! Memory for weights and what meets them: it begins with a cache line, so that no load of a whole
//! vector register lies in two, and much memory lies in large pages, where the system has them
//! for the asking.
//!
//! A step walks through all weights. With pages of 4 KiB it meets a new one every few dozen
//! loads, and on virtual machines finding one takes about as long as memory itself.
//!
//! Memory of 32 MiB or more begins with a large page, and is made of them when it is first
//! touched. Smaller vectors lie side by side in a heap, and many are shorter than three large
//! pages: asked for before, each would become a region of its own, and no page spans two. So they
//! are moved into large pages once they are filled, those that they share with neighbours
//! included: alignment would not cover more.

#![cfg_attr(
    all(target_os = "linux", not(miri)),
    expect(unsafe_code, reason = "advice on memory is a system call")
)]

use std::{
    fmt,
    ops::{Deref, DerefMut},
};

use aligned_vec::{AVec, RuntimeAlign};

/// Bytes of a cache line, and of the widest vector register.
const LINE: usize = 64;

/// Bytes of a large page of the processors that have been met.
const LARGE: usize = 2 << 20;

/// Bytes from which on memory begins with a large page.
const MAPPED: usize = 32 << 20;

/// Fewer bytes than this are left as they are: a step finds them in a cache.
const LEAST: usize = LARGE / 8;

/// Elements that are written at once where they come one by one.
const CHUNK: usize = 256;

/// A vector whose memory begins with a cache line; see the [module](self).
pub struct Aligned<T>(AVec<T, RuntimeAlign>);

/// There is not as much memory as was asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no memory for {bytes} bytes")]
pub struct NoMemory {
    /// What was asked for.
    pub bytes: usize,
}

impl<T: Copy> Aligned<T> {
    /// An empty vector, which has no memory yet.
    #[must_use]
    pub fn new() -> Self {
        Self(AVec::new(LINE))
    }

    /// So many times a value.
    ///
    /// # Errors
    ///
    /// If there is not so much memory.
    pub fn filled(value: T, len: usize) -> Result<Self, NoMemory> {
        let mut values = Self::new();
        values.resize(len, value)?;
        Ok(values)
    }

    /// Makes room for exactly `additional` elements; much room is asked for in large pages.
    ///
    /// # Errors
    ///
    /// If there is not so much memory.
    pub fn reserve(&mut self, additional: usize) -> Result<(), NoMemory> {
        let needed = self.len().saturating_add(additional);
        if needed <= self.capacity() {
            return Ok(());
        }
        let bytes = needed.saturating_mul(size_of::<T>());
        if bytes > isize::MAX.cast_unsigned() - LARGE {
            return Err(NoMemory { bytes });
        }
        let align = if bytes < MAPPED { LINE } else { LARGE };
        if align <= self.0.alignment() {
            return self.0.try_reserve_exact(additional).map_err(|_| NoMemory { bytes });
        }
        let mut grown: AVec<T, RuntimeAlign> = AVec::new(align);
        grown.try_reserve_exact(needed).map_err(|_| NoMemory { bytes })?;
        advise(grown.as_ptr().addr(), bytes, Advice::When);
        grown.extend_from_slice(self);
        self.0 = grown;
        Ok(())
    }

    /// Shortens to `len`, or lengthens to it by so many times a value.
    ///
    /// # Errors
    ///
    /// If there is not so much memory.
    pub fn resize(&mut self, len: usize, value: T) -> Result<(), NoMemory> {
        self.0.truncate(len);
        self.extend(std::iter::repeat_n(value, len - self.len()))
    }

    /// Appends values.
    ///
    /// # Errors
    ///
    /// If there is not so much memory.
    pub fn extend(&mut self, values: impl ExactSizeIterator<Item = T>) -> Result<(), NoMemory> {
        self.reserve(values.len())?;
        let mut values = values.peekable();
        while let Some(&first) = values.peek() {
            let mut chunk = [first; CHUNK];
            let len = values.len().min(CHUNK);
            chunk.iter_mut().zip(&mut values).for_each(|(place, value)| *place = value);
            self.0.extend_from_slice(&chunk[..len]);
        }
        Ok(())
    }

    /// Appends a copy of `values`.
    ///
    /// # Errors
    ///
    /// If there is not so much memory.
    pub fn extend_from_slice(&mut self, values: &[T]) -> Result<(), NoMemory> {
        self.reserve(values.len())?;
        self.0.extend_from_slice(values);
        Ok(())
    }

    /// Elements that there is room for.
    #[must_use]
    pub fn capacity(&self) -> usize {
        self.0.capacity()
    }

    /// Moves the values into large pages, as far as they lie in small ones. The system may
    /// decline: nothing depends on it.
    pub fn settle(&self) {
        let bytes = size_of_val(self.0.as_slice());
        if bytes >= LEAST {
            advise(self.as_ptr().addr(), bytes, Advice::Now);
        }
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
fn advise(address: usize, bytes: usize, advice: Advice) {
    let start = address / LARGE * LARGE;
    let len = (address + bytes).next_multiple_of(LARGE) - start;
    let advice = match advice {
        Advice::When => libc::MADV_HUGEPAGE,
        Advice::Now => libc::MADV_COLLAPSE,
    };
    // SAFETY: neither advice changes what memory holds or who may use it, whatever lies in the
    // pages at both ends.
    let _declined = unsafe { libc::madvise(std::ptr::without_provenance_mut(start), len, advice) };
}

/// Elsewhere the system decides by itself.
#[cfg(not(all(target_os = "linux", not(miri))))]
fn advise(_: usize, _: usize, _: Advice) {}

impl<T> Deref for Aligned<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        &self.0
    }
}

impl<T> DerefMut for Aligned<T> {
    fn deref_mut(&mut self) -> &mut [T] {
        &mut self.0
    }
}

impl<T: Copy> Default for Aligned<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T: Copy> Clone for Aligned<T> {
    fn clone(&self) -> Self {
        Self(AVec::from_slice(self.0.alignment(), self))
    }
}

impl<T: PartialEq> PartialEq for Aligned<T> {
    fn eq(&self, other: &Self) -> bool {
        **self == **other
    }
}

impl<T: fmt::Debug> fmt::Debug for Aligned<T> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(formatter)
    }
}

impl<T: Copy> From<Vec<T>> for Aligned<T> {
    fn from(values: Vec<T>) -> Self {
        Self(AVec::from_slice(LINE, &values))
    }
}

impl<T: Copy> FromIterator<T> for Aligned<T> {
    fn from_iter<I: IntoIterator<Item = T>>(values: I) -> Self {
        Self(AVec::from_iter(LINE, values))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(len: usize) -> impl ExactSizeIterator<Item = u8> {
        (0..len).map(|at| u8::try_from(at % 251).unwrap())
    }

    #[test]
    fn values_stay_when_they_are_moved() {
        for len in [0, 1, CHUNK, LEAST, 9 * LEAST + 12_345] {
            let mut values = Aligned::new();
            values.reserve(len).unwrap();
            assert!(values.capacity() >= len);
            values.extend(bytes(len)).unwrap();
            values.settle();
            assert!(values.iter().copied().eq(bytes(len)), "{len} bytes");
            assert_eq!(values, values.clone());
        }
    }

    #[test]
    #[cfg_attr(miri, ignore = "many bytes")]
    fn memory_begins_with_a_line_and_much_memory_with_a_large_page() {
        let mut values = Aligned::<u8>::new();
        for (len, align) in [(3, LINE), (MAPPED - 1, LINE), (MAPPED, LARGE), (3, LARGE)] {
            values.resize(len, 0).unwrap();
            assert!(values.as_ptr().addr().is_multiple_of(align), "{len} bytes");
            assert_eq!(values.len(), len);
        }
        values.extend(bytes(5)).unwrap();
        assert_eq!(*values, [0, 0, 0, 0, 1, 2, 3, 4]);
    }

    #[test]
    fn memory_that_is_not_there_is_an_error() {
        let mut values = Aligned::from(vec![1_u64]);
        let error = values.reserve(usize::MAX / 16).unwrap_err();
        assert_eq!(error.bytes, 8 * (usize::MAX / 16 + 1));
        assert!(values.reserve(usize::MAX).is_err());
        assert_eq!(*values, [1]);
    }
}
