//! Llama with ternary linear layers: no sub-norms, `SiLU`, usually an untied head.
//!
//! Llama3-8B-1.58, Falcon3-1.58, Falcon-E and models in their layout.

use super::{Family, TRANSFORMERS};

/// Tensor names.
pub const FAMILY: Family = Family { architectures: &["LlamaForCausalLM"], ..TRANSFORMERS };
