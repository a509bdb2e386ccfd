//! Kernels of x86-64.

pub(crate) mod avx2;
pub(crate) mod avx512;
pub(crate) mod avx_vnni;
pub(crate) mod f16;
pub(crate) mod fold;
pub(crate) mod prefetch;
mod screen_kernels;

pub(crate) use prefetch::{prefetch, prefetch_blocks};
