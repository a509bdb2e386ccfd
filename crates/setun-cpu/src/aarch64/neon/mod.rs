//! Kernels of NEON, which every 64-bit ARM processor has.

mod ternary_dot;
