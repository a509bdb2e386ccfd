//! Vectors that begin with a cache line.

use super::*;

fn bytes(len: usize) -> impl ExactSizeIterator<Item = u8> {
    (0..len).map(|at| u8::try_from(at % 251).unwrap())
}

#[test]
fn values_stay_when_they_are_moved() {
    // An interpreter has patience for some thousands of bytes.
    let many = if cfg!(miri) { 4000 } else { LEAST };
    for len in [0, 1, 300, many, 9 * many + 12_345] {
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
    for (len, align) in [(3, LINE), (LARGE, LINE), (MAPPED, LARGE), (3, LARGE)] {
        values.resize(len, 0).unwrap();
        assert!(values.as_ptr().addr().is_multiple_of(align), "{len} bytes");
        assert_eq!(values.len(), len);
    }
    values.extend(bytes(5)).unwrap();
    assert_eq!(*values, [0, 0, 0, 0, 1, 2, 3, 4]);
}

#[test]
fn zeros_are_zeros_and_aligned() {
    let large = if cfg!(miri) { 4000 } else { MAPPED };
    for (len, align) in [(0, 1), (300, LINE), (REQUESTED.min(large) + 5, LINE), (large, LINE)] {
        let mut values = Aligned::zeroed(len).unwrap();
        assert!(values.as_ptr().addr().is_multiple_of(align), "{len} bytes");
        assert!(values.len() == len && values.iter().all(|&value| value == 0));
        values.fill(7);
        values.settle();
        values.extend_from_slice(&[8]).unwrap();
        assert!(values[..len].iter().all(|&value| value == 7) && values[len] == 8);
    }
    assert_eq!(Aligned::zeroed(usize::MAX), Err(NoMemory { bytes: usize::MAX }));
}

#[test]
fn elements_of_an_odd_size_are_aligned() {
    fn check<T: Copy + Default>() {
        for len in [1, 7, 1000] {
            let values = Aligned::filled(T::default(), len).unwrap();
            assert!(values.as_ptr().addr().is_multiple_of(LINE), "{} bytes", size_of::<T>());
            assert_eq!(values.len(), len);
        }
    }
    check::<u8>();
    check::<f32>();
    check::<[f32; 3]>();
}

#[test]
fn memory_that_is_not_there_is_an_error() {
    let mut values = Aligned::from(vec![1_u64]);
    let error = values.reserve(usize::MAX / 16).unwrap_err();
    assert_eq!(error.bytes, 8 * (usize::MAX / 16 + 1));
    assert!(values.reserve(usize::MAX).is_err());
    assert_eq!(*values, [1]);
}
