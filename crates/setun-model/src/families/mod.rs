//! The families of models: a table of tensor names each.
//!
//! Whatever else tells families apart (activation, sub-norms, head, scales) is in
//! [`ModelConfig`]; a plan is built from that alone.

pub mod bitnet;
pub mod llama;

use setun_checkpoint::ModelConfig;

use crate::error::ModelError;

/// Tensor names of a family. `{}` stands for the number of the layer.
#[derive(Clone, Copy, Debug)]
pub struct Family {
    /// Names of the architecture in a configuration.
    pub architectures: &'static [&'static str],
    /// Embedding table.
    pub embedding: &'static str,
    /// Head, where it is not the embedding.
    pub head: &'static str,
    /// Norm before the head.
    pub final_norm: &'static str,
    /// Norm before attention.
    pub input_norm: &'static str,
    /// Norm before the feed-forward part.
    pub post_attention_norm: &'static str,
    /// Norm between attention and `output`.
    pub attention_sub_norm: &'static str,
    /// Norm between gate and `down`.
    pub ffn_sub_norm: &'static str,
    /// Queries.
    pub query: &'static str,
    /// Keys.
    pub key: &'static str,
    /// Values.
    pub value: &'static str,
    /// Output of attention.
    pub output: &'static str,
    /// Gate.
    pub gate: &'static str,
    /// Up.
    pub up: &'static str,
    /// Down.
    pub down: &'static str,
    /// After a linear layer's name: its weight.
    pub weight: &'static str,
    /// After a linear layer's name: its scale.
    pub scale: &'static str,
    /// After a linear layer's name: its bias.
    pub bias: &'static str,
    /// After a linear layer's name: the gain of its own norm.
    pub linear_norm: &'static str,
    /// Ends of the names of tensors that hold nothing of use.
    pub ignored: &'static [&'static str],
}

/// All families.
pub const FAMILIES: [Family; 2] = [bitnet::FAMILY, llama::FAMILY];

/// The family of a configuration.
///
/// # Errors
///
/// If its architecture is in none.
pub fn family(config: &ModelConfig) -> Result<&'static Family, ModelError> {
    FAMILIES
        .iter()
        .find(|family| family.architectures.contains(&config.architecture.as_str()))
        .ok_or_else(|| ModelError::Unsupported {
            what: "architecture",
            found: config.architecture.clone(),
            supported: "BitNetForCausalLM, LlamaForCausalLM",
        })
}

/// The tensors of transformers' decoders, which several families share.
pub const TRANSFORMERS: Family = Family {
    architectures: &[],
    embedding: "model.embed_tokens.weight",
    head: "lm_head.weight",
    final_norm: "model.norm.weight",
    input_norm: "model.layers.{}.input_layernorm.weight",
    post_attention_norm: "model.layers.{}.post_attention_layernorm.weight",
    attention_sub_norm: "model.layers.{}.self_attn.attn_sub_norm.weight",
    ffn_sub_norm: "model.layers.{}.mlp.ffn_sub_norm.weight",
    query: "model.layers.{}.self_attn.q_proj",
    key: "model.layers.{}.self_attn.k_proj",
    value: "model.layers.{}.self_attn.v_proj",
    output: "model.layers.{}.self_attn.o_proj",
    gate: "model.layers.{}.mlp.gate_proj",
    up: "model.layers.{}.mlp.up_proj",
    down: "model.layers.{}.mlp.down_proj",
    weight: ".weight",
    scale: ".weight_scale",
    bias: ".bias",
    linear_norm: ".rms_norm.weight",
    ignored: &["rotary_emb.inv_freq"],
};
