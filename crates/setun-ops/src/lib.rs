//! The operations of a `BitNet` b1.58 model, and what they mean.
//!
//! Every operation has one file here with its **definition**: plain scalar Rust that any
//! backend must equal bit for bit (integer parts everywhere, float parts on every CPU and in
//! WebAssembly). The file of the same name in another crate or shader folder is its counterpart.
//!
//! - A forward pass is data: a [`Plan`] of [`Op`]s over numbered buffers, made once for each
//!   number of rows, and [`BatchInputs`] for each step.
//! - A [`Backend`] moves weights in, prepares plans and runs them. [`ScalarBackend`] does so
//!   with nothing but the definitions; it is the reference, and it is slow.
//! - This crate does no IO, starts no thread and knows no model family. It asks the system for one
//!   thing, to request [memory](aligned) in large pages.
//!
//! Letters in shapes: `rows` tokens of a batch, `hidden` the width of the residual stream,
//! `ffn` the width between gate and down, `heads` query heads, `kv_heads` key and value heads,
//! `head_dim` their width, `vocab` the number of tokens.

pub mod aligned;
pub mod argmax;
pub mod attention;
pub mod backend;
pub mod batch_inputs;
pub mod cache;
mod cache_spec;
pub mod cache_values;
pub mod causal_conv;
pub mod column_sums;
#[cfg(feature = "comparison")]
pub mod comparison;
pub mod delta_net;
pub mod delta_rule;
pub mod dense;
pub mod dense_matmul;
pub mod embed;
pub mod error;
pub mod exp;
pub mod fold;
pub mod gate;
pub mod hadamard;
pub mod head;
pub mod head_norm;
pub mod host_cache;
mod host_cache_methods;
#[cfg(not(target_family = "wasm"))]
pub mod image;
pub mod l2_norm;
pub mod noise;
pub mod numeric;
pub mod op;
pub mod plan;
pub mod quantize;
#[cfg(feature = "comparison")]
pub mod random;
pub mod recurrent;
pub mod rms_norm;
pub mod rope_append;
pub mod scalar;
pub mod screen_dot;
pub mod sigmoid_gate;
pub mod ternary;
pub mod ternary_dot;
pub mod ternary_matmul;
pub mod top_logits;
pub mod weight;

pub use backend::Backend;
pub use batch_inputs::BatchInputs;
pub use cache::{BlockId, CacheElement, CacheSpec};
pub use dense::DenseMatrix;
pub use error::OpsError;
pub use op::{BufferId, Op, WeightId};
pub use plan::Plan;
pub use recurrent::{RecurrentSpec, StateId};
pub use scalar::ScalarBackend;
pub use ternary::TernaryMatrix;
pub use weight::{Usage, WeightData, WeightSpec};
