//! A deterministic simulator of `setun serve` behind a load balancer.
//!
//! - A [trace](Request) says which prompts are sent when. It is read from JSON lines or
//!   [made up](generate).
//! - A replica is an engine: a queue, continuous batching, and a cache whose whole blocks of equal
//!   prefixes are reused, the least recently used dropped first. A step takes what
//!   [was measured](StepCosts).
//! - A [policy](Policy) sends each request to a replica.
//! - A [report](Report) tells the cached share of the prompts, the time to the first token, the
//!   imbalance, and what a lost replica costs. [`plot`] draws reports.
//!
//! Nothing here does IO, reads a clock or starts a thread: the same input gives the same bytes.
//!
//! ```
//! use setun_simulate::{Options, Policy, TraceKind, TraceOptions, generate, simulate};
//!
//! let trace = generate(TraceKind::Conversations, &TraceOptions::default())?;
//! let hash = simulate(&trace, &Options::new(10, Policy::Hash))?;
//! let in_turn = simulate(&trace, &Options::new(10, Policy::RoundRobin))?;
//! assert!(hash.cached_share > in_turn.cached_share);
//! # Ok::<(), setun_simulate::SimulateError>(())
//! ```

mod cache;
mod costs;
mod error;
mod hash;
mod limits;
mod observed;
mod options;
mod plot;
mod random;
mod replica;
mod report;
mod router;
mod simulation;
mod trace;

pub use costs::StepCosts;
pub use error::SimulateError;
pub use limits::{BLOCK_TOKENS, Limits, MAX_ROWS};
pub use observed::Answer;
pub use options::{LostReplica, MAX_REPLICAS, Options};
pub use plot::plot;
pub use report::{FirstToken, Imbalance, Loss, Report};
pub use router::Policy;
pub use simulation::{answers, simulate};
pub use trace::{MAX_TOKENS, Request, TraceKind, TraceOptions, generate, read, write};
