//! Shared parts of the fuzz targets: how an input is run, and what is done with it.

mod harness;
mod stack;
pub mod subjects;
#[path = "../../tests/src/trial.rs"]
pub mod trial;

#[cfg(feature = "hub")]
use setun_hub as hub;

pub use harness::{MemoryBound, run_bounded};

/// Stack of an input: that of a browser.
const STACK_BYTES: usize = if cfg!(feature = "sanitized") { 8 << 20 } else { 1 << 20 };

/// Runs `work` with a stack of [`STACK_BYTES`].
fn on_small_stack<T>(work: impl FnOnce() -> T) -> T {
    stack::on_small_stack(STACK_BYTES, work)
}
