//! The families of models: a table of tensor names each.
//!
//! Whatever else distinguishes families (activation, sub-norms, head, scales) is in
//! [`ModelConfig`]; a plan is built from that alone.

use setun_checkpoint::{ModelConfig, TensorInfo};

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
    /// Norm of each head of the queries.
    pub query_norm: &'static str,
    /// Norm of each head of the keys.
    pub key_norm: &'static str,
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
    /// Queries, keys and values of a delta net.
    pub net_input: &'static str,
    /// `z` of a delta net.
    pub net_z: &'static str,
    /// `b` of a delta net.
    pub net_b: &'static str,
    /// `a` of a delta net.
    pub net_a: &'static str,
    /// Convolution of a delta net: a tensor.
    pub net_conv: &'static str,
    /// Bias before the decay of a delta net: a tensor.
    pub net_dt_bias: &'static str,
    /// Logarithms of the decay's negated factors: a tensor.
    pub net_log_decay: &'static str,
    /// The decay's factors themselves, where a file has them: a tensor.
    pub net_decay: &'static str,
    /// Norm of the heads of a delta net: a tensor.
    pub net_norm: &'static str,
    /// Output of a delta net.
    pub net_output: &'static str,
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

/// All families. Of those that share an architecture, the first is the one that errors name.
pub const FAMILIES: [Family; 5] = [BITNET, BITNET_1BITLLM, LLAMA, QWEN3, QWEN3_5];

/// `BitNet` b1.58: sub-norms, relu² or `SiLU`, usually a tied head. Microsoft's
/// bitnet-b1.58-2B-4T and models in its layout.
pub const BITNET: Family =
    Family { architectures: &["BitNetForCausalLM", "BitnetForCausalLM"], ..TRANSFORMERS };

/// 1bitLLM's reproduction of `BitNet` b1.58, which came before Microsoft's models: other names of
/// the sub-norms, `SiLU`. bitnet_b1_58-large, -xl and -3B: heads of 96, 64 and 100 columns.
pub const BITNET_1BITLLM: Family = Family {
    attention_sub_norm: "model.layers.{}.self_attn.inner_attn_ln.weight",
    ffn_sub_norm: "model.layers.{}.mlp.ffn_layernorm.weight",
    ..BITNET
};

/// Llama with ternary linear layers: no sub-norms, `SiLU`, usually an untied head.
/// Llama3-8B-1.58, Falcon3-1.58, Falcon-E and models in their layout.
pub const LLAMA: Family = Family { architectures: &["LlamaForCausalLM"], ..TRANSFORMERS };

/// Qwen3 with ternary linear layers: norms of the heads, no sub-norms, `SiLU`. Ternary-Bonsai and
/// models in its layout.
pub const QWEN3: Family = Family { architectures: &["Qwen3ForCausalLM"], ..TRANSFORMERS };

/// Qwen3.5, 3.6 and 3.8 with ternary linear layers: layers with a gated delta net, and some with gated attention.
/// Ternary-Bonsai 27B and models in its layout.
pub const QWEN3_5: Family = Family { architectures: &["Qwen3_5ForCausalLM"], ..TRANSFORMERS };

/// The family of a checkpoint: by its architecture and, where several share that, by the names of
/// its tensors.
///
/// # Errors
///
/// If its architecture is in none.
pub fn family(config: &ModelConfig, tensors: &[TensorInfo]) -> Result<&'static Family, ModelError> {
    let of_architecture =
        |family: &&Family| family.architectures.contains(&config.architecture.as_str());
    let families = || FAMILIES.iter().filter(of_architecture);
    let by_names = families().find(|family| config.sub_norms && family.has_sub_norms(tensors));
    by_names.or_else(|| families().next()).ok_or_else(|| ModelError::Unsupported {
        what: "architecture",
        found: config.architecture.clone(),
        supported: "BitNetForCausalLM, LlamaForCausalLM, Qwen3ForCausalLM, Qwen3_5ForCausalLM",
    })
}

impl Family {
    /// Whether a tensor has the name of a sub-norm of the first layer.
    fn has_sub_norms(&self, tensors: &[TensorInfo]) -> bool {
        [self.attention_sub_norm, self.ffn_sub_norm]
            .map(first_layer)
            .iter()
            .any(|name| tensors.iter().any(|tensor| tensor.name == *name))
    }

    /// The other families that this one's architecture could mean.
    pub(crate) fn others(&self) -> impl Iterator<Item = &'static Self> {
        let own = *self;
        FAMILIES.iter().filter(move |family| {
            family.architectures == own.architectures
                && family.attention_sub_norm != own.attention_sub_norm
        })
    }
}

fn first_layer(pattern: &str) -> String {
    pattern.replace("{}", "0")
}

/// The tensors of transformers' decoders, which several families share.
pub const TRANSFORMERS: Family = Family {
    architectures: &[],
    embedding: "model.embed_tokens.weight",
    head: "lm_head.weight",
    final_norm: "model.norm.weight",
    input_norm: "model.layers.{}.input_layernorm.weight",
    post_attention_norm: "model.layers.{}.post_attention_layernorm.weight",
    query_norm: "model.layers.{}.self_attn.q_norm.weight",
    key_norm: "model.layers.{}.self_attn.k_norm.weight",
    attention_sub_norm: "model.layers.{}.self_attn.attn_sub_norm.weight",
    ffn_sub_norm: "model.layers.{}.mlp.ffn_sub_norm.weight",
    query: "model.layers.{}.self_attn.q_proj",
    key: "model.layers.{}.self_attn.k_proj",
    value: "model.layers.{}.self_attn.v_proj",
    output: "model.layers.{}.self_attn.o_proj",
    net_input: "model.layers.{}.linear_attn.in_proj_qkv",
    net_z: "model.layers.{}.linear_attn.in_proj_z",
    net_b: "model.layers.{}.linear_attn.in_proj_b",
    net_a: "model.layers.{}.linear_attn.in_proj_a",
    net_conv: "model.layers.{}.linear_attn.conv1d.weight",
    net_dt_bias: "model.layers.{}.linear_attn.dt_bias",
    net_log_decay: "model.layers.{}.linear_attn.A_log",
    net_decay: "model.layers.{}.linear_attn.decay",
    net_norm: "model.layers.{}.linear_attn.norm.weight",
    net_output: "model.layers.{}.linear_attn.out_proj",
    gate: "model.layers.{}.mlp.gate_proj",
    up: "model.layers.{}.mlp.up_proj",
    down: "model.layers.{}.mlp.down_proj",
    weight: ".weight",
    scale: ".weight_scale",
    bias: ".bias",
    linear_norm: ".rms_norm.weight",
    ignored: &["rotary_emb.inv_freq"],
};
