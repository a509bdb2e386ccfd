//! Fields of `config.json` that are read, or known to change no result.

use serde_json::{Map, Value};

use crate::{
    error::CheckpointError,
    files, json,
    warning::{Warning, unknown},
};

/// Fields that are read.
const READ: &[&str] = &[
    "architectures",
    "attention_bias",
    "bos_token_id",
    "eos_token_id",
    "head_dim",
    "hadamard_config",
    "hidden_act",
    "hidden_size",
    "input_bits",
    "intermediate_size",
    "layer_types",
    "max_position_embeddings",
    "mlp_bias",
    "model_type",
    "num_attention_heads",
    "num_hidden_layers",
    "num_key_value_heads",
    "partial_rotary_factor",
    "pretraining_model_parallel",
    "quantization",
    "quantization_config",
    "rms_norm_eps",
    "rope_parameters",
    "rope_scaling",
    "rope_theta",
    "tie_word_embeddings",
    "use_sliding_window",
    "vocab_size",
    "weight_bits",
];

/// Fields of training, of other programs and of the file's history; also of sampling, which
/// `generation_config.json` has.
const OTHERS: &[&str] = &[
    "add_cross_attention",
    "attention_dropout",
    "attn_implementation",
    "auto_map",
    "bad_words_ids",
    "begin_suppress_tokens",
    "chunk_size_feed_forward",
    "cross_attention_hidden_size",
    "decoder_start_token_id",
    "diversity_penalty",
    "do_sample",
    "dtype",
    "early_stopping",
    "embd_pdrop",
    "encoder_no_repeat_ngram_size",
    "exponential_decay_length_penalty",
    "finetuning_task",
    "forced_bos_token_id",
    "forced_eos_token_id",
    "hidden_dropout",
    "id2label",
    "initializer_range",
    "is_bitnet_config",
    "is_decoder",
    "is_encoder_decoder",
    "keys_to_ignore_at_inference",
    "label2id",
    "length_penalty",
    "max_length",
    "max_window_layers",
    "min_length",
    "no_repeat_ngram_size",
    "num_beam_groups",
    "num_beams",
    "num_return_sequences",
    "output_attentions",
    "output_hidden_states",
    "output_scores",
    "pad_token_id",
    "prefix",
    "pretraining_tp",
    "problem_type",
    "pruned_heads",
    "remove_invalid_values",
    "repetition_penalty",
    "resid_pdrop",
    "return_dict",
    "return_dict_in_generate",
    "sep_token_id",
    "sliding_window",
    "suppress_tokens",
    "task_specific_params",
    "temperature",
    "tf_legacy_loss",
    "tie_encoder_decoder",
    "tokenizer_class",
    "top_k",
    "top_p",
    "torch_dtype",
    "torchscript",
    "transformers.js_config",
    "transformers_version",
    "typical_p",
    "unk_token_id",
    "unsloth_fixed",
    "unsloth_version",
    "use_bfloat16",
    "use_cache",
    "use_flash_attention_2",
    "output_router_logits",
];

/// The warning about fields of a `config.json` that may change the result and are not read. Fields that
/// are false, empty or null change nothing.
pub(crate) fn warning(bytes: &[u8]) -> Result<Option<Warning>, CheckpointError> {
    let map: Map<String, Value> = json::read(files::CONFIG, bytes)?;
    let is_off = |value: &Value| match value {
        Value::Null | Value::Bool(false) => true,
        Value::String(text) => text.is_empty(),
        Value::Array(list) => list.is_empty(),
        Value::Object(fields) => fields.is_empty(),
        _ => false,
    };
    let is_known = |key: &str| key.starts_with('_') || READ.contains(&key) || OTHERS.contains(&key);
    let unread = map.iter().filter(|(key, value)| !is_off(value) && !is_known(key));
    Ok(unknown(files::CONFIG, "fields", unread.map(|(key, _)| key.as_str())))
}
