//! Kernels of AVX2.

pub(crate) mod ternary_dot;
