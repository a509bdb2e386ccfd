//! The CPU backend: every operation of `setun-ops`, bit for bit, with SIMD and threads.
//!
//! Start at [`CpuBackend`]: it holds a thread team and one instruction set, chosen when it is
//! made. `dispatch.rs` leads the team through a plan; each operation has one file, named like its
//! definition. Float operations are written once over sixteen virtual lanes (`lanes.rs`); only
//! the integer loops, `ternary_dot.rs` and `screen_dot.rs`, exist more than once, in a folder for
//! each instruction set.
//!
//! - Every function returns the same bits as its namesake in `setun-ops`, on every machine, for
//!   any number of threads and any batch. There is no fast mode.
//! - A step allocates nothing: scratch memory is sized by `prepare`.
//! - `unsafe` is confined to `split` (disjoint parts of one buffer), `team::rendezvous` (one
//!   pointer to the current job), prefetches, and the three levels whose feature no token of a
//!   dependency proves: `neon_dotprod`, `neon_i8mm` and `avx_vnni`.

#![expect(
    clippy::inline_always,
    reason = "what is generic over an instruction set is inlined into code compiled for it"
)]

#[cfg(target_arch = "aarch64")]
mod aarch64;
mod argmax;
mod attention;
mod backend;
mod causal_conv;
mod column_sums;
mod delta_net;
mod delta_rule;
mod delta_scratch;
mod dense_matmul;
mod dispatch;
mod embed;
mod error;
mod float_mode;
mod gate;
mod group_scratch;
mod hadamard;
mod head;
mod head_norm;
#[cfg(not(target_family = "wasm"))]
mod image;
mod isa;
mod lanes;
mod level;
mod member_sums;
mod memory;
mod quantize;
mod quantized;
mod resident_bytes;
mod rms_norm;
mod rope_append;
mod scaled_runs;
mod scratch;
mod screen;
mod screen_dot;
mod sigmoid_gate;
mod split;
mod step;
mod team;
mod ternary_columns;
mod ternary_dot;
mod ternary_matmul;
mod ternary_panel;
mod ternary_rows;
mod top_logits;
mod walk;
#[cfg(target_arch = "wasm32")]
mod wasm32;
#[cfg(target_arch = "x86_64")]
mod x86_64;

#[cfg(feature = "testing")]
#[doc(hidden)]
pub mod testing;

pub use backend::{CpuBackend, CpuOptions, MAX_THREADS};
pub use error::CpuError;
pub use level::Level;
pub use resident_bytes::{screen_bytes, weight_bytes};
pub use step::{CpuStep, CpuWeight};
#[cfg(all(target_arch = "wasm32", target_feature = "atomics"))]
pub use team::{pool_workers, serve_pool, set_pool_workers};
