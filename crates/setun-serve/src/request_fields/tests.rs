use std::collections::BTreeSet;

use serde_json::json;
use setun::GenerateOptions;

use super::*;
use crate::{fields::Fields, sampling, warnings::Warnings};

/// Fields of `ChatCompletionRequest` and `CompletionRequest` of vLLM 0.12, and those before 0.12.
const VLLM: &[&str] = &[
    "add_generation_prompt",
    "add_special_tokens",
    "allowed_token_ids",
    "bad_words",
    "best_of",
    "cache_salt",
    "chat_template",
    "chat_template_kwargs",
    "continue_final_message",
    "documents",
    "echo",
    "frequency_penalty",
    "guided_choice",
    "guided_decoding_backend",
    "guided_grammar",
    "guided_json",
    "guided_regex",
    "guided_whitespace_pattern",
    "ignore_eos",
    "include_reasoning",
    "include_stop_str_in_output",
    "kv_transfer_params",
    "length_penalty",
    "logit_bias",
    "logits_processors",
    "logprobs",
    "max_completion_tokens",
    "max_tokens",
    "messages",
    "min_p",
    "min_tokens",
    "mm_processor_kwargs",
    "model",
    "n",
    "parallel_tool_calls",
    "presence_penalty",
    "priority",
    "prompt",
    "prompt_embeds",
    "prompt_logprobs",
    "reasoning_effort",
    "repetition_detection",
    "repetition_penalty",
    "request_id",
    "response_format",
    "return_token_ids",
    "return_tokens_as_token_ids",
    "seed",
    "skip_special_tokens",
    "spaces_between_special_tokens",
    "stop",
    "stop_token_ids",
    "stream",
    "stream_options",
    "structural_tag",
    "structured_outputs",
    "suffix",
    "temperature",
    "tool_choice",
    "tools",
    "top_k",
    "top_logprobs",
    "top_p",
    "truncate_prompt_tokens",
    "use_beam_search",
    "user",
    "vllm_xargs",
];

/// Fields of llama-server's `/completion` and `/v1/chat/completions`.
const LLAMA: &[&str] = &[
    "adaptive_decay",
    "adaptive_target",
    "backend_sampling",
    "cache_prompt",
    "chat_format",
    "chat_template_kwargs",
    "dry_allowed_length",
    "dry_base",
    "dry_multiplier",
    "dry_penalty_last_n",
    "dry_sequence_breakers",
    "dynatemp_exponent",
    "dynatemp_range",
    "frequency_penalty",
    "grammar",
    "grammar_lazy",
    "grammar_triggers",
    "id_slot",
    "ignore_eos",
    "json_schema",
    "logit_bias",
    "lora",
    "max_tokens",
    "min_keep",
    "min_p",
    "mirostat",
    "mirostat_eta",
    "mirostat_tau",
    "n_cmpl",
    "n_discard",
    "n_indent",
    "n_keep",
    "n_predict",
    "n_probs",
    "parse_tool_calls",
    "penalize_nl",
    "post_sampling_probs",
    "presence_penalty",
    "preserved_tokens",
    "prompt",
    "reasoning_format",
    "reasoning_in_content",
    "repeat_last_n",
    "repeat_penalty",
    "response_fields",
    "return_progress",
    "return_tokens",
    "samplers",
    "seed",
    "speculative.n_max",
    "speculative.n_min",
    "speculative.p_min",
    "stop",
    "stream",
    "t_max_predict_ms",
    "temperature",
    "tfs_z",
    "thinking_forced_open",
    "timings_per_token",
    "top_k",
    "top_n_sigma",
    "top_p",
    "typical_p",
    "xtc_probability",
    "xtc_threshold",
];

/// A value that no field has where it says nothing.
fn value() -> Value {
    json!(17)
}

fn finish(field: &str, value: Value) -> (Result<(), String>, Warnings) {
    let warnings = Warnings::default();
    let body = Value::Object([(field.to_owned(), value)].into_iter().collect()).to_string();
    let fields = Fields::read(body.as_bytes()).expect("an object");
    (fields.finish(&warnings).map_err(|error| format!("{error:?}")), warnings)
}

#[test]
fn each_field_of_vllm_and_llama_server_is_known() {
    let options: BTreeSet<&str> =
        sampling::specs().flat_map(|spec| sampling::names(spec.name)).collect();
    for field in VLLM.iter().chain(LLAMA) {
        assert!(treatment(field).is_some() || options.contains(field), "{field}");
    }
    for (field, treatment) in FIELDS {
        assert!(*treatment == Done || !options.contains(field), "{field} is an option");
        assert_eq!(FIELDS.iter().filter(|(name, _)| name == field).count(), 1, "{field}");
    }
    assert!(GenerateOptions::NAMES.contains(&"bad_words") && options.contains("stop_token_ids"));
}

#[test]
fn what_would_change_an_answer_is_refused_by_name_unless_it_says_nothing() {
    for (field, treatment) in FIELDS {
        let (result, warnings) = finish(field, value());
        match treatment {
            Refused(neutral, reason) => {
                let error = result.expect_err(field);
                assert!(error.contains("unsupported_parameter"), "{error}");
                assert!(error.contains(&format!("{field}: not supported: {reason}")), "{error}");
                let values = neutral.iter().map(|text| serde_json::from_str(text).expect("JSON"));
                for value in values.chain([json!(null), json!([]), json!({}), json!("")]) {
                    let (result, warnings) = finish(field, value);
                    assert_eq!((result, warnings.list()), (Ok(()), vec![]), "{field}");
                }
            }
            Nothing => assert_eq!((result, warnings.list()), (Ok(()), vec![]), "{field}"),
            Done => {
                assert_eq!(result, Ok(()));
                let words = format!("`{field}` is not read here and is ignored");
                assert_eq!(warnings.list(), [words]);
            }
        }
    }
    let (result, warnings) = finish("temprature", json!(1));
    assert_eq!(result, Ok(()));
    assert_eq!(warnings.list(), ["`temprature` is unknown and is ignored"]);
}
