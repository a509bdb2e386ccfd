//! JavaScript bindings of setun: one class a file, no logic.
//!
//! The npm package wraps these; its users never see them. The crate is compiled in five
//! variants from the same source: 128-bit SIMD, relaxed SIMD, both again with threads, and 128-bit
//! SIMD with WebGPU.

mod beams;
mod build;
mod context;
mod error;
mod events;
mod files;
mod filter;
#[cfg(target_family = "wasm")] // what JavaScript holds stays on its thread
mod form;
mod generation;
mod loader;
mod metrics;
mod model;
mod options;
mod pace;
mod pressure;
mod processors;
mod report;
mod score;
mod session;
#[cfg(all(target_arch = "wasm32", target_feature = "atomics"))]
mod threads;

pub use beams::BeamSearch;
pub use build::BuildInfo;
pub use files::Files;
pub use generation::Generation;
pub use loader::Loader;
pub use model::Model;

/// Runs once, when the module is instantiated: a Rust panic is then readable in the console.
#[wasm_bindgen::prelude::wasm_bindgen(start)]
pub fn start() {
    console_error_panic_hook::set_once();
}
