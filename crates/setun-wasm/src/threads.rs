//! The thread pool of the threaded variants.
//!
//! `npm/generated/*/threads.js` has the page start each thread from the address of the worker that it
//! runs in: an address that every bundler and every content security policy already accepts.

use wasm_bindgen::{JsValue, prelude::wasm_bindgen};

/// What a thread starts with: `[module, memory]`.
#[wasm_bindgen(js_name = threadStart)]
#[must_use]
pub fn thread_start() -> Vec<JsValue> {
    vec![wasm_bindgen::module(), wasm_bindgen::memory()]
}

/// Makes the calling thread a worker of the pool. It does not return.
#[wasm_bindgen(js_name = servePool)]
pub fn serve_pool() {
    setun_cpu::serve_pool()
}

/// Says how many threads serve the pool.
#[wasm_bindgen(js_name = setPoolWorkers)]
pub fn set_pool_workers(count: usize) {
    setun_cpu::set_pool_workers(count);
}

/// Number of threads that serve the pool.
pub(crate) fn running() -> usize {
    setun_cpu::pool_workers()
}
