//! `config.json` from the metadata and the tensors that there are.

use serde_json::{Map, Value, json};
use setun_ops::ternary::MAX_COLUMNS;

use super::{
    metadata::Metadata,
    rope::{self, Llama3},
};
use crate::{
    config::{ACTIVATION_GROUP, MAX_CONTEXT, MAX_LAYERS},
    error::CheckpointError,
    files, json as texts,
    tensor::{TensorInfo, find},
};

/// Columns of activations that share a scale, 0 for a row. Of setun alone.
pub(super) const ACTIVATION_GROUP_KEY: &str = "setun.activation_group";

/// What is known of an architecture besides its keys.
pub(super) struct Architecture {
    /// Its name, which begins its keys.
    pub(super) name: &'static str,
    /// Activation where no key says it.
    activation: &'static str,
    /// Whether the rows of queries and keys are paired for the other `RoPE`.
    pub(super) is_paired: bool,
    /// Whether queries and keys have norms.
    is_qwen: bool,
    /// Whether some layers are delta nets.
    pub(super) is_hybrid: bool,
}

/// Name of the architecture with delta nets.
pub(super) const HYBRID: &str = "qwen35";

impl Architecture {
    const fn new(name: &'static str, activation: &'static str) -> Self {
        Self { name, activation, is_paired: false, is_qwen: false, is_hybrid: false }
    }
}

const ARCHITECTURES: [Architecture; 6] = [
    Architecture::new("bitnet", "silu"),
    Architecture::new("bitnet-25", "relu2"),
    Architecture::new("bitnet-b1.58", "relu2"),
    Architecture { is_paired: true, ..Architecture::new("llama", "silu") },
    Architecture { is_qwen: true, ..Architecture::new("qwen3", "silu") },
    Architecture { is_qwen: true, is_hybrid: true, ..Architecture::new(HYBRID, "silu") },
];

/// Keys that would change what is computed, with the values that change nothing.
const UNSUPPORTED: [(&str, f64); 12] = [
    ("expert_count", 0.0),
    ("attention.sliding_window", 0.0),
    ("attention.max_alibi_bias", 0.0),
    ("attention.clamp_kqv", 0.0),
    ("attention.scale", 0.0),
    ("logit_scale", 1.0),
    ("embedding_scale", 1.0),
    ("residual_scale", 1.0),
    ("rope.scale_linear", 1.0),
    ("rope.scaling.attn_factor", 1.0),
    ("rope.scaling.yarn_attn_factor", 1.0),
    ("rope.scaling.yarn_ext_factor", 1.0),
];

/// Keys, without the architecture's name, that [`Keys::config_json`] refuses where they change the computation.
pub(super) fn checked_keys() -> impl Iterator<Item = &'static str> {
    UNSUPPORTED.iter().map(|(key, _)| *key)
}

/// The architecture that the metadata name.
pub(super) fn architecture(metadata: &Metadata) -> Result<&'static Architecture, CheckpointError> {
    const KEY: &str = "general.architecture";
    let found = metadata.text(KEY)?.ok_or_else(|| metadata.absent(KEY, "a name"))?;
    ARCHITECTURES.iter().find(|known| known.name == found).ok_or_else(|| {
        let supported = match found {
            // Converters pair rows of queries and keys for llama; of others nothing says so.
            "falcon3" => {
                "llama, as Falcon3 models say; how rows of queries and keys lie, \
                          this name does not tell"
            }
            _ => "bitnet, bitnet-25, bitnet-b1.58, llama, qwen3, qwen35",
        };
        unsupported(metadata, "architecture", found, supported)
    })
}

/// The keys of an architecture.
pub(super) struct Keys<'a> {
    metadata: &'a Metadata,
    tensors: &'a [TensorInfo],
    architecture: &'static Architecture,
}

/// Tokens that begin and end a text, as far as the file names any.
#[derive(Clone, Debug, Default)]
pub(super) struct Tokens {
    pub(super) first: Option<u32>,
    pub(super) last: Vec<u32>,
}

impl<'a> Keys<'a> {
    pub(super) fn new(
        metadata: &'a Metadata,
        tensors: &'a [TensorInfo],
        architecture: &'static Architecture,
    ) -> Self {
        Self { metadata, tensors, architecture }
    }

    fn key(&self, key: &str) -> String {
        format!("{}.{key}", self.architecture.name)
    }

    pub(super) fn file(&self) -> &str {
        &self.metadata.file
    }

    pub(super) fn error(&self, key: &str, expected: &str, found: &str) -> CheckpointError {
        self.metadata.error(&self.key(key), expected, found)
    }

    pub(super) fn flags(&self, key: &str) -> Result<Option<&[bool]>, CheckpointError> {
        self.metadata.flags(&self.key(key))
    }

    pub(super) fn size(&self, key: &str, limit: usize) -> Result<Option<usize>, CheckpointError> {
        self.metadata.size(&self.key(key), limit)
    }

    pub(super) fn needed(&self, key: &str, limit: usize) -> Result<usize, CheckpointError> {
        let absent = || self.metadata.absent(&self.key(key), "a whole number");
        self.size(key, limit)?.filter(|size| *size > 0).ok_or_else(absent)
    }

    fn has(&self, name: &str) -> bool {
        self.tensors.iter().any(|tensor| tensor.name == name)
    }

    /// Every block has tensors: so nothing is allocated for blocks that only a key claims.
    pub(super) fn check_blocks(&self) -> Result<(), CheckpointError> {
        const KEY: &str = "block_count";
        let (blocks, tensors) = (self.needed(KEY, MAX_LAYERS)?, self.tensors.len());
        if blocks <= tensors {
            return Ok(());
        }
        let expected = format!("at most {tensors}, the number of tensors");
        Err(self.error(KEY, &expected, &blocks.to_string()))
    }

    /// Query heads.
    pub(super) fn heads(&self) -> Result<usize, CheckpointError> {
        self.needed("attention.head_count", MAX_CONTEXT)
    }

    /// Key and value heads.
    pub(super) fn kv_heads(&self) -> Result<usize, CheckpointError> {
        let found = self.size("attention.head_count_kv", MAX_CONTEXT)?;
        found.filter(|heads| *heads > 0).map_or_else(|| self.heads(), Ok)
    }

    /// Rows of the embedding: as many tokens as there can be.
    pub(super) fn vocab_size(&self) -> Result<usize, CheckpointError> {
        Ok(find(self.tensors, "model.embed_tokens.weight")?.expect_matrix()?.0)
    }

    /// Base of the frequencies.
    pub(super) fn theta(&self) -> Result<f64, CheckpointError> {
        const EXACT: &str = "setun.rope.freq_base";
        const DEFAULT: f64 = 10_000.0;
        if let Some(theta) = self.metadata.number(EXACT)? {
            return Ok(theta);
        }
        Ok(self.metadata.number(&self.key("rope.freq_base"))?.unwrap_or(DEFAULT))
    }

    /// Heads are as wide for values as for keys, and are rotated whole unless the model is a hybrid.
    pub(super) fn head_dim(
        &self,
        hidden_size: usize,
        heads: usize,
    ) -> Result<usize, CheckpointError> {
        let rotated = self.size("rope.dimension_count", MAX_CONTEXT)?;
        let rotated = rotated.filter(|_| !self.architecture.is_hybrid);
        let keys = self.size("attention.key_length", MAX_CONTEXT)?;
        let head_dim = keys.or(rotated).unwrap_or(hidden_size / heads);
        let values = self.size("attention.value_length", MAX_CONTEXT)?;
        for (key, found) in [("rope.dimension_count", rotated), ("attention.value_length", values)]
        {
            if let Some(found) = found.filter(|found| *found != head_dim) {
                let expected = format!("{head_dim}, the width of a head");
                return Err(self.metadata.error(&self.key(key), &expected, &found.to_string()));
            }
        }
        Ok(head_dim)
    }

    /// The text of `config.json`. `rope_divisors` are the values of [`rope::TENSOR`]; `more` are fields that
    /// stand in place of those found here.
    pub(super) fn config_json(
        &self,
        rope_divisors: Option<&[f32]>,
        tokens: &Tokens,
        more: Map<String, Value>,
    ) -> Result<Vec<u8>, CheckpointError> {
        self.refuse_variants()?;
        let hidden_size = self.needed("embedding_length", MAX_CONTEXT)?;
        let heads = self.heads()?;
        let has_sub_norms = self.has("model.layers.0.self_attn.attn_sub_norm.weight");
        let (architecture, model_type) = match (has_sub_norms, self.architecture.is_qwen) {
            (true, _) => ("BitNetForCausalLM", "bitnet"),
            (false, true) => ("Qwen3ForCausalLM", "qwen3"),
            (false, false) => ("LlamaForCausalLM", "llama"),
        };
        let has_bias = |part: &str| self.has(&format!("model.layers.0.{part}.bias"));
        // Scales multiply in either; only the second adds biases after them, as GGUF means it.
        let has_biases = self.tensors.iter().any(|tensor| tensor.name.ends_with("_proj.bias"));
        let class = if has_biases { "bitlinear" } else { "autobitlinear" };
        let mut config = json!({
            "architectures": [architecture],
            "model_type": model_type,
            "vocab_size": self.vocab_size()?,
            "hidden_size": hidden_size,
            "intermediate_size": self.needed("feed_forward_length", MAX_CONTEXT)?,
            "num_hidden_layers": self.needed("block_count", MAX_LAYERS)?,
            "num_attention_heads": heads,
            "num_key_value_heads": self.kv_heads()?,
            "head_dim": self.head_dim(hidden_size, heads)?,
            "hidden_act": self.activation()?,
            "max_position_embeddings": self.needed("context_length", MAX_CONTEXT)?,
            "rms_norm_eps": self.norm_eps()?,
            "rope_parameters": self.rope(rope_divisors)?,
            "tie_word_embeddings": !self.has("lm_head.weight"),
            "attention_bias": has_bias("self_attn.q_proj"),
            "mlp_bias": has_bias("mlp.gate_proj"),
            "bos_token_id": tokens.first,
            "eos_token_id": tokens.last,
            "quantization_config": {
                "activation_group": self.activation_group()?,
                "quant_method": "bitnet",
                "linear_class": class,
                "quantization_mode": "offline",
                "modules_to_not_convert": ["lm_head"],
            },
        });
        for (key, value) in more {
            config[key] = value;
        }
        texts::write(files::CONFIG, &config)
    }

    /// The number of columns that share an activation scale. The file's own key decides. Without one, Qwen3
    /// models and files with a scale for each 128 columns or fewer have groups, others one scale a row.
    fn activation_group(&self) -> Result<Value, CheckpointError> {
        if let Some(group) = self.metadata.size(ACTIVATION_GROUP_KEY, MAX_COLUMNS)? {
            return Ok(if group == 0 { json!("row") } else { json!(group) });
        }
        let is_float = self.architecture.is_qwen
            || self.tensors.iter().any(|tensor| tensor.dtype.is_by_groups());
        Ok(if is_float { json!(ACTIVATION_GROUP) } else { json!("row") })
    }

    fn activation(&self) -> Result<&str, CheckpointError> {
        for key in ["hidden_act", "hidden_activation"] {
            match self.metadata.text(&self.key(key))? {
                None => {}
                Some("relu2" | "relu_sqr" | "relu_squared") => return Ok("relu2"),
                Some("silu" | "swish") => return Ok("silu"),
                Some(found) => {
                    return Err(unsupported(self.metadata, "hidden_act", found, "relu2, silu"));
                }
            }
        }
        Ok(self.architecture.activation)
    }

    fn norm_eps(&self) -> Result<f64, CheckpointError> {
        let key = self.key("attention.layer_norm_rms_epsilon");
        let eps = self.metadata.number(&key)?;
        eps.ok_or_else(|| self.metadata.absent(&key, "a number"))
    }

    fn rope(&self, divisors: Option<&[f32]>) -> Result<Value, CheckpointError> {
        let theta = self.theta()?;
        let scaling = self.metadata.text(&self.key("rope.scaling.type"))?;
        let factor = self.metadata.number(&self.key("rope.scaling.factor"))?.unwrap_or(1.0);
        let mut rope = Map::new();
        rope.insert("rope_theta".to_owned(), json!(theta));
        let llama3 = match divisors {
            Some(divisors) => rope::recognise(self.metadata, theta, divisors)?,
            None => None,
        };
        let more = match (scaling, llama3) {
            (Some("yarn"), None) => self.yarn(factor)?,
            (None | Some("none"), Some(llama3)) => llama3_json(llama3),
            (None | Some("none" | "linear"), None) if factor == 0.0 || factor == 1.0 => {
                json!({ "rope_type": "default" })
            }
            (found, _) => {
                let found = format!("{} with factor {factor}", found.unwrap_or("none"));
                return Err(unsupported(self.metadata, "rope.scaling", &found, "none, yarn"));
            }
        };
        rope.extend(more.as_object().cloned().unwrap_or_default());
        Ok(Value::Object(rope))
    }

    fn yarn(&self, factor: f64) -> Result<Value, CheckpointError> {
        let number = |key: &str| self.metadata.number(&self.key(&format!("rope.scaling.{key}")));
        let original = "rope.scaling.original_context_length";
        let mut yarn = json!({
            "rope_type": "yarn",
            "factor": factor,
            "original_max_position_embeddings": self.needed(original, MAX_CONTEXT)?,
        });
        let optional =
            [("beta_fast", number("yarn_beta_fast")?), ("beta_slow", number("yarn_beta_slow")?)];
        for (key, value) in optional {
            if let Some(value) = value {
                yarn[key] = json!(value);
            }
        }
        Ok(yarn)
    }

    /// Refuses what would compute something else than this library does.
    fn refuse_variants(&self) -> Result<(), CheckpointError> {
        for (key, harmless) in UNSUPPORTED {
            let key = self.key(key);
            let found = self.metadata.number(&key)?.unwrap_or(harmless);
            if found != harmless {
                let expected = format!("{harmless}: models with another are not supported");
                return Err(self.metadata.error(&key, &expected, &found.to_string()));
            }
        }
        let key = self.key("attention.causal");
        if self.metadata.flag(&key)? == Some(false) {
            return Err(self.metadata.error(&key, "true", "false"));
        }
        Ok(())
    }
}

fn llama3_json(llama3: Llama3) -> Value {
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "2^24 at most")]
    let context = llama3.context.clamp(1.0, 16_777_216.0) as u64;
    json!({
        "rope_type": "llama3",
        "factor": llama3.factor,
        "low_freq_factor": llama3.low,
        "high_freq_factor": llama3.high,
        "original_max_position_embeddings": context,
    })
}

pub(super) fn unsupported(
    metadata: &Metadata,
    what: &'static str,
    found: &str,
    supported: &'static str,
) -> CheckpointError {
    let (file, found) = (metadata.file.clone(), found.to_owned());
    CheckpointError::UnsupportedModel { file, what, found, supported }
}
