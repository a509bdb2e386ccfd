//! JavaScript bindings of setun: one class a file, no logic.
//!
//! The npm package wraps them. The crate is compiled as five variants: 128-bit SIMD, relaxed SIMD,
//! each also with threads, and 128-bit SIMD with WebGPU.

mod beam_search;
mod build;
mod content_filter;
mod context_strategy;
mod device_report;
mod embed;
mod error;
mod event_loop;
mod events;
mod files;
mod generation;
#[cfg(target_family = "wasm")] // JavaScript objects stay on their thread
mod grammar;
mod loader;
mod metrics;
mod model;
mod options;
mod processors;
mod promise;
mod score;
mod session;
#[cfg(not(any(target_feature = "atomics", feature = "webgpu")))]
mod shards;
#[cfg(all(target_arch = "wasm32", target_feature = "atomics"))]
mod threads;

pub use beam_search::BeamSearch;
pub use build::BuildInfo;
pub use files::Files;
pub use generation::Generation;
pub use loader::Loader;
pub use model::Model;
#[cfg(not(any(target_feature = "atomics", feature = "webgpu")))]
pub use shards::{ShardWorker, Shards};
#[cfg(all(target_arch = "wasm32", target_feature = "atomics"))]
pub use threads::{serve_pool, set_pool_workers, thread_start};

/// Runs once, when the module is instantiated: a Rust panic is then readable in the console.
#[wasm_bindgen::prelude::wasm_bindgen(start)]
pub fn start() {
    console_error_panic_hook::set_once();
}
