//! `BitNet` b1.58: sub-norms, relu² or `SiLU`, usually a tied head.
//!
//! Microsoft's bitnet-b1.58-2B-4T and models in its layout.

use super::{Family, TRANSFORMERS};

/// Tensor names.
pub const FAMILY: Family =
    Family { architectures: &["BitNetForCausalLM", "BitnetForCausalLM"], ..TRANSFORMERS };
