//! Kernels of WebAssembly's 128-bit SIMD.

mod column_sums;
pub(super) mod run_dots;
pub(super) mod screen_dot;
pub(super) mod ternary_dot;
mod ternary_panel;

use fearless_simd::wasm32::WasmSimd128;

/// Proof of 128-bit SIMD.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Simd128(pub(crate) WasmSimd128);
