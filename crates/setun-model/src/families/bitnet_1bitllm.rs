//! 1bitLLM's reproduction of `BitNet` b1.58, which came before Microsoft's models: other names of
//! the sub-norms, `SiLU`.
//!
//! bitnet_b1_58-large, -xl and -3B: heads of 96, 64 and 100 columns.

use super::{Family, bitnet};

/// Tensor names.
pub const FAMILY: Family = Family {
    attention_sub_norm: "model.layers.{}.self_attn.inner_attn_ln.weight",
    ffn_sub_norm: "model.layers.{}.mlp.ffn_layernorm.weight",
    ..bitnet::FAMILY
};
