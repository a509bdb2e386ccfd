//! Bytes that several owners share, such as those of a mapped file, and typed views of them.
#![expect(unsafe_code, reason = "a view is a pointer into memory that its owner keeps")]

use std::{
    fmt,
    ops::{Deref, Range},
    ptr::NonNull,
    sync::Arc,
};

use bytemuck::AnyBitPattern;

use super::{Aligned, LINE};

/// What keeps bytes in memory, at one place, until it is dropped.
type Owner = Arc<dyn AsRef<[u8]> + Send + Sync>;

/// Some of the bytes of an owner, who lives as long as they do. Clones share the memory.
#[derive(Clone)]
pub struct SharedBytes {
    owner: Owner,
    range: Range<usize>,
}

/// Elements among shared bytes.
pub(super) struct SharedSlice<T> {
    start: NonNull<T>,
    len: usize,
    owner: Owner,
}

impl SharedBytes {
    /// All bytes of an owner.
    pub fn new(owner: impl AsRef<[u8]> + Send + Sync + 'static) -> Self {
        let range = 0..owner.as_ref().len();
        Self { owner: Arc::new(owner), range }
    }

    /// Some of these bytes; none where the range goes beyond them.
    #[must_use]
    pub fn slice(&self, range: Range<usize>) -> Option<Self> {
        let found = range.start <= range.end && range.end <= self.range.len();
        let at = |offset: usize| self.range.start + offset;
        found
            .then(|| Self { owner: Arc::clone(&self.owner), range: at(range.start)..at(range.end) })
    }

    /// The elements that these bytes are; none where they do not begin with a cache line, or are no
    /// whole number of them.
    #[must_use]
    pub fn elements<T: AnyBitPattern + Default>(&self) -> Option<Aligned<T>> {
        let elements: &[T] = bytemuck::try_cast_slice(self).ok()?;
        if !self.as_ptr().addr().is_multiple_of(LINE) {
            return None;
        }
        let start = NonNull::from(elements).cast();
        Some(SharedSlice { start, len: elements.len(), owner: Arc::clone(&self.owner) }.into())
    }
}

impl Deref for SharedBytes {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &(*self.owner).as_ref()[self.range.clone()]
    }
}

impl fmt::Debug for SharedBytes {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} shared bytes", self.range.len())
    }
}

impl<T> Deref for SharedSlice<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        // SAFETY: the place and length are those of a slice of `T`s that the owner gave for a
        // shared borrow of itself. It is held here, nobody gets it mutably while it is, and so
        // what it gave stays in place and unchanged.
        unsafe { NonNull::slice_from_raw_parts(self.start, self.len).as_ref() }
    }
}

impl<T> Clone for SharedSlice<T> {
    fn clone(&self) -> Self {
        Self { start: self.start, len: self.len, owner: Arc::clone(&self.owner) }
    }
}

// SAFETY: it gives shared access to elements alone, and its owner may go to and be used by any thread.
unsafe impl<T: Sync> Send for SharedSlice<T> {}
// SAFETY: as above.
unsafe impl<T: Sync> Sync for SharedSlice<T> {}

impl<T: Copy + Default> From<SharedSlice<T>> for Aligned<T> {
    fn from(shared: SharedSlice<T>) -> Self {
        Self { shared: Some(shared), ..Self::new() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes() -> SharedBytes {
        SharedBytes::new(Aligned::from((0..200).collect::<Vec<u8>>()))
    }

    #[test]
    fn elements_are_those_of_the_owner_until_they_are_changed() {
        let bytes = bytes();
        let shared: Aligned<u16> = bytes.slice(64..72).unwrap().elements().unwrap();
        let expected = [64_u8, 66, 68, 70].map(|low| u16::from_ne_bytes([low, low + 1]));
        assert_eq!(*shared, expected);
        assert_eq!(shared.as_ptr().addr(), bytes.as_ptr().addr() + 64);
        let copy = shared.clone();
        assert_eq!(copy.as_ptr(), shared.as_ptr());
        drop((bytes, shared));
        let mut changed = copy.clone();
        changed[0] = 7;
        changed.extend_from_slice(&[8]).unwrap();
        assert_eq!(*changed, [7, expected[1], expected[2], expected[3], 8]);
        let mut longer = copy.clone();
        longer.extend_from_slice(&[9]).unwrap();
        longer.settle();
        assert_eq!((*copy == expected, longer.len(), longer[4]), (true, 5, 9));
    }

    #[test]
    fn what_is_not_there_or_not_aligned_is_refused() {
        let bytes = bytes();
        assert!(bytes.slice(0..201).is_none() && bytes.slice(200..200).unwrap().is_empty());
        #[expect(clippy::reversed_empty_ranges, reason = "a range of a damaged file")]
        let reversed = bytes.slice(5..4);
        assert!(reversed.is_none());
        assert!(bytes.slice(64..67).unwrap().elements::<u16>().is_none());
        assert!(bytes.slice(32..64).unwrap().elements::<u16>().is_none());
        assert!(bytes.slice(64..68).unwrap().slice(0..5).is_none());
        assert!(bytes.slice(128..132).unwrap().elements::<f32>().is_some());
    }
}
