//! Kernels of x86-64.

pub(crate) mod avx2;
