//! Kernels of AVX2.

pub(crate) mod column_sums;
pub(crate) mod run_dots;
pub(crate) mod screen_dot;
pub(crate) mod ternary_dot;
pub(crate) mod ternary_panel;
