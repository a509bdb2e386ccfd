//! The WebAssembly modules of the npm package: `setun-wasm`, linked.
//!
//! Link-time optimisation is that of the crate which is linked. This one has no code, so it can be
//! optimised for speed, which kernels need, while the bindings are compiled for size.

pub use setun_wasm::*;
