//! Memory that may not be to be had.

use setun_ops::{
    OpsError,
    aligned::{Aligned, NoMemory},
};

/// A vector of zeros, or an error if the memory is not to be had.
pub(crate) fn zeroed<T: Copy + Default>(
    len: usize,
    what: &'static str,
) -> Result<Aligned<T>, OpsError> {
    let no_memory = |NoMemory { bytes }| OpsError::OutOfMemory { what, bytes };
    Aligned::filled(T::default(), len).map_err(no_memory)
}

/// As [`zeroed`], of memory that those who fill it are the first to touch.
pub(crate) fn zeroed_bytes(len: usize, what: &'static str) -> Result<Aligned<u8>, OpsError> {
    let no_memory = |NoMemory { bytes }| OpsError::OutOfMemory { what, bytes };
    Aligned::zeroed(len).map_err(no_memory)
}
