//! Kernels of AVX-512 with VNNI, on the processors that `fearless_simd` counts as this level.

mod blocks;
pub(crate) mod column_sums;
mod run_dots;
pub(crate) mod screen_dot;
pub(crate) mod ternary_dot;
mod ternary_panel;
