//! Kernels of WebAssembly.

#[cfg(target_feature = "relaxed-simd")]
pub(crate) mod relaxed;
#[cfg(target_feature = "simd128")]
pub(crate) mod simd128;
