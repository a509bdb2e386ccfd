//! Qwen3 with ternary linear layers: norms of the heads, no sub-norms, `SiLU`.
//!
//! Ternary-Bonsai and models in its layout.

use super::{Family, TRANSFORMERS};

/// Tensor names.
pub const FAMILY: Family = Family { architectures: &["Qwen3ForCausalLM"], ..TRANSFORMERS };
