//! Kernels of AVX2.

pub(crate) mod column_sums;
pub(crate) mod ternary_dot;
