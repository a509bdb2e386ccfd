//! Keys of a GGUF file that are read, or known to change no result.

use super::{hadamard, metadata::Metadata};
use crate::warning::{Warning, unknown};

/// Beginnings of keys that describe a file, or how it was made.
const DESCRIPTIONS: &[&str] = &[
    "general.",
    "split.",
    "quantize.",
    "imatrix.",
    "training.",
    "mradermacher.",
    "setun.",
    "tokenizer.ggml.fim_",
    hadamard::PREFIX, // each is read
];

/// Ends of keys that begin with the name of the architecture.
const ARCHITECTURE: &[&str] = &[
    "attention.causal",
    "attention.head_count",
    "attention.head_count_kv",
    "attention.key_length",
    "attention.layer_norm_epsilon",
    "attention.layer_norm_rms_epsilon",
    "attention.value_length",
    "block_count",
    "context_length",
    "embedding_length",
    "expert_used_count",
    "feed_forward_length",
    "hidden_act",
    "hidden_activation",
    "rope.dimension_count",
    "rope.freq_base",
    "rope.scaling.factor",
    "rope.scaling.finetuned",
    "rope.scaling.original_context_length",
    "rope.scaling.type",
    "rope.scaling.yarn_beta_fast",
    "rope.scaling.yarn_beta_slow",
    "tensor_data_layout",
    "vocab_size",
];

/// Ends of keys of the tokenizer. What names other tokens changes nothing by itself.
const TOKENIZER: &[&str] = &[
    "chat_template",
    "ggml.add_bos_token",
    "ggml.add_eos_token",
    "ggml.add_sep_token",
    "ggml.add_space_prefix",
    "ggml.bos_token_id",
    "ggml.cls_token_id",
    "ggml.eom_token_id",
    "ggml.eos_token_id",
    "ggml.eot_token_id",
    "ggml.mask_token_id",
    "ggml.merges",
    "ggml.middle_token_id",
    "ggml.model",
    "ggml.padding_token_id",
    "ggml.pre",
    "ggml.prefix_token_id",
    "ggml.remove_extra_whitespaces",
    "ggml.scores",
    "ggml.seperator_token_id",
    "ggml.suffix_token_id",
    "ggml.token_type",
    "ggml.token_type_count",
    "ggml.tokens",
    "ggml.unknown_token_id",
];

/// Names the keys of a file that may change the result and are not read. `checked` are ends of the
/// architecture's keys that are refused where they would change it.
pub(super) fn warning<'a>(
    metadata: &Metadata,
    architecture: &str,
    checked: impl Iterator<Item = &'a str>,
) -> Option<Warning> {
    let checked: Vec<_> = checked.collect();
    let is_known = |key: &str| {
        let after = |prefix: &str| key.strip_prefix(prefix)?.strip_prefix('.');
        DESCRIPTIONS.iter().any(|known| key.starts_with(known))
            || after("tokenizer").is_some_and(|end| TOKENIZER.contains(&end))
            || after(architecture)
                .is_some_and(|end| ARCHITECTURE.contains(&end) || checked.contains(&end))
    };
    let keys = metadata.values.keys().map(String::as_str).filter(|key| !is_known(key));
    unknown(&metadata.file, "keys", keys)
}
