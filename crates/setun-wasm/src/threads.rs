//! The thread pool of the threaded variants.
//!
//! `wasm-bindgen-rayon` exports `initThreadPool(n)`. The build replaces its JavaScript half by
//! `npm/generated/*/threads.js`, which starts each thread from the address of the worker it
//! runs in: an address that every bundler and every content security policy already accepts.

use std::collections::BTreeSet;

// Linked for its exports alone.
use wasm_bindgen_rayon as _;

/// Number of threads that answer a broadcast.
pub(crate) fn running() -> usize {
    rayon::broadcast(|context| context.index()).into_iter().collect::<BTreeSet<_>>().len()
}
