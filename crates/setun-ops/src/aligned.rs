//! Memory for weights and what meets them: it begins with a cache line, so that no load of a whole
//! vector register lies in two, and much memory lies in large pages, where the system has them
//! for the asking.
//!
//! A step walks through all weights. With pages of 4 KiB it meets a new one every few dozen
//! loads, and on virtual machines finding one takes about as long as memory itself.
//!
//! Memory of 32 MiB or more begins with a large page, and is made of them when it is first
//! touched. Smaller vectors lie side by side in a heap, and many are shorter than three large
//! pages. Zeros of a mebibyte or more are requested in large pages as well, those at both ends
//! included, so that the regions of neighbours become one. What lies in small pages all the same,
//! as where two vectors meet, is moved into large ones once it is filled: alignment would not
//! cover more.

#![cfg_attr(
    all(target_os = "linux", not(miri)),
    expect(unsafe_code, reason = "advice on memory is a system call")
)]

#[cfg(not(target_family = "wasm"))]
mod shared;

use std::{
    fmt,
    mem::MaybeUninit,
    ops::{Deref, DerefMut},
};

#[cfg(not(target_family = "wasm"))]
pub use shared::SharedBytes;
#[cfg(not(target_family = "wasm"))]
use shared::SharedSlice;

/// Bytes of a cache line, and of the widest vector register.
pub const LINE: usize = 64;

/// Bytes that pages of any kind divide or are multiples of; where they are larger, the system declines.
#[cfg(all(target_os = "linux", not(miri)))]
const SMALL: usize = 4 << 10;

/// Bytes of a large page of the processors that have been met.
const LARGE: usize = 2 << 20;

/// Bytes from which on memory begins with a large page.
const MAPPED: usize = 32 << 20;

/// Bytes of zeros from which on large pages are requested before they are touched.
const REQUESTED: usize = LARGE / 2;

/// Fewer bytes than this are left as they are: a step finds them in a cache.
const LEAST: usize = LARGE / 8;

/// A vector whose memory begins with a cache line; see the [module](self). (Elements of 32 bytes
/// or more have to say so themselves, as `#[repr(align(64))]`.)
pub struct Aligned<T> {
    // Aligned by elements before the first: allocators that must align leave gaps,
    // a third of the heap of weights with glibc's.
    memory: Vec<T>,
    start: usize,
    /// Memory of others, in place of its own until it is changed.
    #[cfg(not(target_family = "wasm"))]
    shared: Option<SharedSlice<T>>,
}

/// There is not as much memory as was requested.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no memory for {bytes} bytes")]
pub struct NoMemory {
    /// What was requested.
    pub bytes: usize,
}

impl<T: Copy + Default> Aligned<T> {
    /// An empty vector, which has no memory yet.
    #[must_use]
    pub fn new() -> Self {
        Self::of(vec![], 0)
    }

    fn of(memory: Vec<T>, start: usize) -> Self {
        Self {
            memory,
            start,
            #[cfg(not(target_family = "wasm"))]
            shared: None,
        }
    }

    /// This many times a value.
    ///
    /// # Errors
    ///
    /// If there is not so much memory.
    pub fn filled(value: T, len: usize) -> Result<Self, NoMemory> {
        let mut values = Self::new();
        values.resize(len, value)?;
        Ok(values)
    }

    /// Makes room for exactly `additional` elements; much room is requested in large pages.
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
        let align = if bytes < MAPPED { LINE } else { LARGE };
        let mut memory: Vec<T> = vec![];
        let room = needed.saturating_add(max_padding::<T>(align));
        memory.try_reserve_exact(room).map_err(|_| NoMemory { bytes })?;
        if bytes >= MAPPED {
            advise(memory.spare_capacity_mut(), Advice::When);
        }
        // Where there is no such place it is too far away.
        let start = memory.as_ptr().align_offset(align);
        let start = if start <= max_padding::<T>(align) { start } else { 0 };
        memory.resize(start, T::default());
        memory.extend_from_slice(self);
        *self = Self::of(memory, start);
        Ok(())
    }

    /// Shortens to `len`, or lengthens to it by this many times a value.
    ///
    /// # Errors
    ///
    /// If there is not so much memory.
    pub fn resize(&mut self, len: usize, value: T) -> Result<(), NoMemory> {
        self.reserve(len.saturating_sub(self.len()))?;
        self.memory.resize(self.start + len, value);
        Ok(())
    }

    /// Appends values.
    ///
    /// # Errors
    ///
    /// If there is not so much memory.
    pub fn extend(&mut self, values: impl ExactSizeIterator<Item = T>) -> Result<(), NoMemory> {
        self.reserve(values.len())?;
        self.memory.extend(values);
        Ok(())
    }

    /// Appends a copy of `values`.
    ///
    /// # Errors
    ///
    /// If there is not so much memory.
    pub fn extend_from_slice(&mut self, values: &[T]) -> Result<(), NoMemory> {
        self.reserve(values.len())?;
        self.memory.extend_from_slice(values);
        Ok(())
    }

    /// What `Clone` and `From` are made of. They cannot fail, so that without memory they end as
    /// those of a `Vec` do; what a file decides about is made by [`reserve`](Self::reserve).
    fn copy_of(values: &[T]) -> Self {
        let mut copy = Self::new();
        copy.extend_from_slice(values).expect("memory for a copy");
        copy
    }

    /// Elements that there is room for; none in memory of others.
    #[must_use]
    pub fn capacity(&self) -> usize {
        self.memory.capacity() - self.start
    }

    /// Moves the values into large pages, as far as they lie in small ones. The system may
    /// decline: nothing depends on it. Memory of others stays as it is.
    pub fn settle(&self) {
        #[cfg(not(target_family = "wasm"))]
        if self.shared.is_some() {
            return;
        }
        if size_of_val(&**self) >= LEAST {
            advise(self, Advice::Now);
        }
    }
}

impl Aligned<u8> {
    /// This many zeros. Memory that the system hands out as zeros is not touched here: threads
    /// that fill it share what its first touch takes.
    ///
    /// # Errors
    ///
    /// If there is not so much memory.
    pub fn zeroed(len: usize) -> Result<Self, NoMemory> {
        let align = if len < MAPPED { LINE } else { LARGE };
        let room = len.saturating_add(max_padding::<u8>(align));
        let mut memory: Vec<u8> =
            bytemuck::allocation::try_zeroed_vec(room).map_err(|()| NoMemory { bytes: len })?;
        if len >= REQUESTED {
            advise(&memory, Advice::When);
        }
        let start = memory.as_ptr().align_offset(align);
        // Where there is no such place it is too far away.
        let start = if start <= max_padding::<u8>(align) { start } else { 0 };
        memory.truncate(start + len);
        Ok(Self::of(memory, start))
    }
}

/// Most elements that lie before the first place that is so aligned, if there is one.
const fn max_padding<T>(align: usize) -> usize {
    // The largest power of two that divides a size: 12 bytes are 4 steps of 3.
    let step = 1 << size_of::<T>().trailing_zeros();
    if step < align { align / step } else { 0 }
}

/// Has the system provide memory that is about to be filled, in one call: it takes about half of what
/// the first touch of each page does.
pub(crate) fn provide<T>(room: &mut [MaybeUninit<T>]) {
    if size_of_val(room) >= LEAST {
        advise(room, Advice::Pages);
    }
}

/// What is requested.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Advice {
    /// Pages of any kind.
    Pages,
    /// Large pages when memory is touched for the first time.
    When,
    /// Large pages for what was touched already.
    Now,
}

/// Linux has it from 5.14 on; the crate `libc` names it for glibc alone.
#[cfg(all(target_os = "linux", not(miri)))]
const MADV_POPULATE_WRITE: libc::c_int = 23;

/// Linux has it from 6.1 on; the crate `libc` names it for glibc alone.
#[cfg(all(target_os = "linux", not(miri)))]
const MADV_COLLAPSE: libc::c_int = 25;

/// Requests whole pages, those at both ends included: what lies beside a weight is mostly
/// another.
#[cfg(all(target_os = "linux", not(miri)))]
fn advise<T>(values: &[T], advice: Advice) {
    let (page, advice) = match advice {
        Advice::Pages => (SMALL, MADV_POPULATE_WRITE),
        Advice::When => (LARGE, libc::MADV_HUGEPAGE),
        Advice::Now => (LARGE, MADV_COLLAPSE),
    };
    let address = values.as_ptr().addr();
    let start = address / page * page;
    let len = (address + size_of_val(values)).next_multiple_of(page) - start;
    // SAFETY: no advice changes what memory holds or who may use it, whatever lies in the pages
    // at both ends.
    let _declined = unsafe { libc::madvise(std::ptr::without_provenance_mut(start), len, advice) };
}

/// Elsewhere the system decides by itself.
#[cfg(not(all(target_os = "linux", not(miri))))]
fn advise<T>(_: &[T], _: Advice) {}

impl<T> Deref for Aligned<T> {
    type Target = [T];

    #[inline]
    fn deref(&self) -> &[T] {
        #[cfg(not(target_family = "wasm"))]
        if let Some(shared) = &self.shared {
            return shared;
        }
        &self.memory[self.start..]
    }
}

/// Memory of others is copied first, which ends as a `Clone` does where there is none for it. What
/// is mapped is only read.
impl<T: Copy + Default> DerefMut for Aligned<T> {
    fn deref_mut(&mut self) -> &mut [T] {
        #[cfg(not(target_family = "wasm"))]
        if let Some(shared) = self.shared.take() {
            *self = Self::copy_of(&shared);
        }
        &mut self.memory[self.start..]
    }
}

impl<T> AsRef<[T]> for Aligned<T> {
    fn as_ref(&self) -> &[T] {
        self
    }
}

impl<T: Copy + Default> Default for Aligned<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T: Copy + Default> Clone for Aligned<T> {
    fn clone(&self) -> Self {
        #[cfg(not(target_family = "wasm"))]
        if let Some(shared) = &self.shared {
            return shared.clone().into();
        }
        Self::copy_of(self)
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

impl<T: Copy + Default> From<Vec<T>> for Aligned<T> {
    fn from(values: Vec<T>) -> Self {
        Self::copy_of(&values)
    }
}

impl<T: Copy + Default> FromIterator<T> for Aligned<T> {
    fn from_iter<I: IntoIterator<Item = T>>(values: I) -> Self {
        Self::copy_of(&values.into_iter().collect::<Vec<T>>())
    }
}

#[cfg(test)]
mod tests;
