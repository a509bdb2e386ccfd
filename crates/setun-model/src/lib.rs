//! From a configuration and named tensors to logits.
//!
//! - [`Model`] is the trait that an engine is written against: logits for a [`Batch`] over a
//!   [`PagedCache`]. [`Transformer`] implements it for every family in [`families`], on any
//!   [`Backend`](setun_ops::Backend).
//! - A family is data: its tensor names, and what its configuration says.
//! - Names and shapes are checked once, against the file's headers, before any data is read.
//! - This crate names no backend and does no IO.

pub mod batch;
pub mod cache;
mod cache_spec;
pub mod error;
pub mod families;
pub mod layer_range;
pub mod layout;
pub mod model;
mod options;
pub mod outputs;
pub mod plan;
pub mod profile;
pub mod rope;
#[cfg(feature = "sample")]
pub mod sample;
pub mod split;
pub mod stage;
mod step_inputs;
pub mod transformer;
pub mod weights;

pub use batch::{Batch, BatchRow, RequestedOutput, SequenceId};
pub use cache::{CacheSalt, PagedCache};
pub use cache_spec::cache_spec;
pub use error::ModelError;
pub use layer_range::LayerRange;
pub use layout::Layout;
pub use model::{MaybeSend, MaybeSendBackend, MemoryUse, Model};
pub use options::{BLOCK_POSITIONS, MAX_ROWS, MAX_TENTATIVE, TransformerOptions};
pub use outputs::{Outputs, Row};
pub use profile::{Density, LayerDensity, OpProfile, Profile, TimedOp};
pub use split::{Split, SplitBuilder};
pub use stage::{Stage, StageBuilder};
pub use transformer::Transformer;
pub use weights::{Contents, Weights, WeightsBuilder};
