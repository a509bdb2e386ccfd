//! Kernels of NEON, which every 64-bit ARM processor has.

mod column_sums;
mod run_dots;
mod screen_dot;
mod ternary_dot;
mod ternary_panel;
