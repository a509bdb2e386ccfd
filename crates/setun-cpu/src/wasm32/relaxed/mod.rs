//! Kernels of WebAssembly's relaxed SIMD.

mod column_sums;
mod screen_dot;
mod ternary_dot;
mod ternary_panel;

use fearless_simd::wasm32::WasmSimd128;

/// Proof of relaxed SIMD, which only a build for it has.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Relaxed(pub(crate) WasmSimd128);
