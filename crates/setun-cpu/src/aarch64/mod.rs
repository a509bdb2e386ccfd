//! Kernels of 64-bit ARM.

pub(crate) mod neon;
pub(crate) mod neon_dotprod;
pub(crate) mod neon_i8mm;
mod vectors;
