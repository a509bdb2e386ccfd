//! Fields of requests to vLLM, llama-server and the APIs' own servers, each with its treatment.

use serde_json::Value;

/// The treatment of a field.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Treatment {
    /// It is read where it means something; elsewhere the answer has a warning.
    Done,
    /// It would change the answer. Values that would not, as JSON, and what to use instead.
    Refused(&'static [&'static str], &'static str),
    /// It changes no text.
    Nothing,
}

use Treatment::{Done, Nothing, Refused};

/// All that are known, but for the options of a text, which are done.
pub(crate) const FIELDS: &[(&str, Treatment)] = &[
    // The APIs of OpenAI and Anthropic.
    ("audio", Done),
    ("cache_control", Nothing),
    ("client_metadata", Nothing),
    ("container", Nothing),
    ("context_management", Nothing),
    ("conversation", Done),
    ("include", Done),
    ("inference_geo", Nothing),
    ("input", Done),
    ("instructions", Done),
    ("logprobs", Done),
    ("max_tool_calls", Nothing),
    ("mcp_servers", Refused(&[], "the server calls no others: use tools")),
    ("messages", Done),
    ("metadata", Nothing),
    ("modalities", Done),
    ("model", Done),
    ("n", Done),
    ("output_config", Done),
    ("parallel_tool_calls", Done),
    ("prediction", Nothing),
    ("previous_response_id", Done),
    ("prompt", Done),
    ("prompt_cache_key", Nothing),
    ("prompt_cache_retention", Nothing),
    ("reasoning", Done),
    ("response_format", Done),
    ("safety_identifier", Nothing),
    ("service_tier", Nothing),
    ("speed", Nothing),
    ("store", Nothing),
    ("stream", Done),
    ("stream_options", Nothing),
    ("suffix", Done),
    ("system", Done),
    ("text", Done),
    ("thinking", Done),
    ("tool_choice", Done),
    ("tools", Done),
    ("top_logprobs", Done),
    ("truncation", Nothing),
    ("user", Nothing),
    ("verbosity", Nothing),
    ("web_search_options", Refused(&[], "the server searches nothing: use tools")),
    // vLLM.
    ("add_generation_prompt", Done),
    ("add_special_tokens", Done),
    ("best_of", Refused(&["1"], "use n")),
    ("cache_salt", Done),
    ("chat_template", Refused(&[], "the model has its own; use chat_template_kwargs")),
    ("chat_template_kwargs", Done),
    ("detokenize", Refused(&["true"], "answers are texts")),
    ("documents", Refused(&[], "use messages")),
    ("echo", Refused(&["false"], "use /v1/completions")),
    ("guided_choice", Done),
    ("guided_decoding_backend", Nothing),
    ("guided_grammar", Done),
    ("guided_json", Done),
    ("guided_regex", Done),
    ("guided_whitespace_pattern", Refused(&[], "use `x-guidance` in the schema")),
    ("ignore_eos", Done),
    ("include_reasoning", Refused(&["true"], "reasoning is apart from the text")),
    ("include_stop_str_in_output", Refused(&["false"], "a stop string is no part of the text")),
    ("kv_transfer_params", Nothing),
    ("length_penalty", Refused(&["1"], "there are no beams")),
    ("logits_processors", Refused(&[], "use logit_bias or a grammar")),
    ("mm_processor_kwargs", Nothing),
    ("prompt_embeds", Refused(&[], "prompts are texts or tokens")),
    ("prompt_logprobs", Refused(&[], "use echo and logprobs of /v1/completions")),
    ("repetition_detection", Refused(&[], "use dry_multiplier")),
    ("request_id", Nothing),
    ("return_token_ids", Refused(&["false"], "use /tokenize")),
    (
        "return_tokens_as_token_ids",
        Refused(&["false"], "log-probabilities have the bytes of tokens"),
    ),
    ("skip_special_tokens", Refused(&["true"], "texts have no special tokens")),
    ("spaces_between_special_tokens", Nothing),
    ("structural_tag", Refused(&[], "use tools")),
    ("structured_outputs", Done),
    ("truncate_prompt_tokens", Refused(&["-1"], "send a prompt that fits")),
    ("use_beam_search", Refused(&["false"], "use n")),
    ("vllm_xargs", Refused(&[], "there are no such arguments")),
    // llama-server.
    ("adaptive_decay", Nothing),
    ("adaptive_target", Refused(&["-1"], "use mirostat_tau")),
    ("backend_sampling", Nothing),
    ("cache_prompt", Nothing),
    ("chat_format", Refused(&[], "the model's template has one")),
    ("grammar", Done),
    ("grammar_lazy", Refused(&["false"], "use tools")),
    ("grammar_triggers", Refused(&[], "use tools")),
    ("id_slot", Nothing),
    ("json_schema", Done),
    ("lora", Refused(&[], "adapters are not loaded")),
    ("min_keep", Refused(&["0"], "filters leave one token or more")),
    ("mirostat", Refused(&["0"], "use mirostat_tau")),
    ("n_cmpl", Refused(&["1"], "use n")),
    ("n_discard", Nothing),
    ("n_indent", Refused(&["0"], "use a grammar")),
    ("n_keep", Nothing),
    ("n_probs", Refused(&["0"], "use logprobs")),
    ("parse_tool_calls", Refused(&["true"], "use tool_choice none")),
    ("penalize_nl", Nothing), // nothing in llama-server, too
    ("post_sampling_probs", Refused(&["false"], "log-probabilities are those before sampling")),
    ("preserved_tokens", Refused(&[], "texts have no special tokens")),
    (
        "reasoning_format",
        Refused(&["\"auto\"", "\"deepseek\""], "reasoning is apart from the text"),
    ),
    ("reasoning_in_content", Refused(&["false"], "reasoning is apart from the text")),
    ("repeat_last_n", Refused(&["-1"], "the penalty looks at the whole text")),
    ("response_fields", Refused(&[], "answers have all fields")),
    ("return_progress", Nothing),
    ("return_tokens", Refused(&["false"], "use /tokenize")),
    ("speculative.n_max", Nothing),
    ("speculative.n_min", Nothing),
    ("speculative.p_min", Nothing),
    ("t_max_predict_ms", Refused(&["-1", "0"], "use timeout")),
    ("tfs_z", Refused(&["1"], "use min_p")),
    ("thinking_forced_open", Refused(&["false"], "use enable_thinking")),
    ("timings_per_token", Nothing),
    // Ollama.
    ("context", Done),
    ("draft_num_predict", Nothing),
    ("f16_kv", Nothing),
    ("format", Done),
    ("images", Done),
    ("keep_alive", Done),
    ("logits_all", Nothing),
    ("low_vram", Nothing),
    ("main_gpu", Nothing),
    ("num_batch", Nothing),
    ("num_ctx", Nothing),
    ("num_gpu", Nothing),
    ("num_keep", Nothing),
    ("num_thread", Nothing),
    ("numa", Nothing),
    ("options", Done),
    ("penalize_newline", Nothing),
    ("raw", Done),
    ("shift", Nothing),
    ("template", Done),
    ("think", Done),
    ("truncate", Nothing),
    ("use_mlock", Nothing),
    ("use_mmap", Nothing),
    ("vocab_only", Nothing),
];

/// The treatment of a field that nobody has taken; none if it is unknown.
pub(crate) fn treatment(field: &str) -> Option<Treatment> {
    FIELDS.iter().find(|(name, _)| *name == field).map(|(_, treatment)| *treatment)
}

/// Whether a value says what is done without it.
pub(crate) fn is_neutral(value: &Value, neutral: &[&str]) -> bool {
    let is_empty = match value {
        Value::Null => true,
        Value::String(text) => text.is_empty(),
        Value::Array(list) => list.is_empty(),
        Value::Object(map) => map.is_empty(),
        Value::Bool(_) | Value::Number(_) => false,
    };
    let is_same = |other: Value| match (value.as_f64(), other.as_f64()) {
        (Some(one), Some(other)) => one.to_bits() == other.to_bits(),
        _ => *value == other,
    };
    is_empty || neutral.iter().any(|text| serde_json::from_str(text).is_ok_and(is_same))
}

#[cfg(test)]
mod tests;
