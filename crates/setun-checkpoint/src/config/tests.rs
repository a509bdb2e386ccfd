//! Configurations in the spellings of public models, and bad ones.

use setun_ops::op::Activation;

use super::{LinearClass, ModelConfig, Quantization, QuantizationMode, RopeScaling};
use crate::{error::CheckpointError, generation::GenerationDefaults};

fn parse(text: &str) -> Result<ModelConfig, CheckpointError> {
    ModelConfig::parse(text.as_bytes(), &GenerationDefaults::default())
}

/// A `BitNet` with these fields besides.
fn bitnet(fields: &str) -> Result<ModelConfig, CheckpointError> {
    parse(&format!(r#"{{"architectures": ["BitNetForCausalLM"]{fields}}}"#))
}

/// The spelling of microsoft/bitnet-b1.58-2B-4T.
#[test]
fn the_large_bitnet_is_read() {
    let config = parse(
        r#"{"architectures": ["BitNetForCausalLM"], "model_type": "bitnet",
        "auto_map": {"AutoConfig": "configuration_bitnet.BitNetConfig"},
        "bos_token_id": 128000, "eos_token_id": 128001, "hidden_act": "relu2",
        "hidden_size": 2560, "intermediate_size": 6912, "max_position_embeddings": 4096,
        "rms_norm_eps": 1e-05, "num_attention_heads": 20, "num_hidden_layers": 30,
        "num_key_value_heads": 5, "rope_theta": 500000.0, "tie_word_embeddings": true,
        "vocab_size": 128256, "quantization_config": {"quant_method": "bitnet",
        "linear_class": "autobitlinear", "quantization_mode": "offline"}}"#,
    );
    let config = config.unwrap();
    assert_eq!((config.head_dim, config.query_width(), config.kv_width()), (128, 2560, 640));
    assert_eq!((config.context_length, config.tied_head), (4096, true));
    assert_eq!(config.quantization.linear_class, LinearClass::AutoBitLinear);
    assert_eq!(config.eos_tokens, [128_001]);
}

/// The 1.58-bit Llama-3 of `HF1BitLLM` names its quantization twice, and no linear class.
#[test]
fn a_repeated_field_counts_where_it_stands_last() {
    let config = parse(
        r#"{"architectures": ["LlamaForCausalLM"], "model_type": "llama",
        "hidden_size": 4096, "intermediate_size": 14336, "num_key_value_heads": 8,
        "quantization_config": {"modules_to_not_convert": null, "quant_method": "bitnet"},
        "rope_scaling": null, "rope_theta": 500000.0, "vocab_size": 128256,
        "quantization_config": {"quant_method": "bitnet"}}"#,
    );
    let config = config.unwrap();
    assert_eq!(config.quantization.linear_class, LinearClass::BitLinear);
    assert_eq!((config.heads, config.kv_heads, config.layers.len()), (32, 8, 32));
    assert_eq!((config.norm_eps, config.context_length), (1e-6, 2048));
    assert!(!config.sub_norms && !config.tied_head);
}

/// 1bitLLM's files have an older spelling, the other model type, and master weights.
#[test]
fn the_older_spelling_is_read() {
    let config = parse(
        r#"{"architectures": ["BitnetForCausalLM"], "model_type": "llama",
        "hidden_act": "silu", "hidden_size": 1536, "input_bits": 8, "weight_bits": 1,
        "intermediate_size": 4096, "num_attention_heads": 16, "num_hidden_layers": 24,
        "num_key_value_heads": 16, "rope_scaling": null, "rope_theta": 10000.0,
        "tie_word_embeddings": true, "vocab_size": 32002}"#,
    );
    let config = config.unwrap();
    assert_eq!((config.architecture.as_str(), config.sub_norms), ("BitnetForCausalLM", true));
    assert_eq!((config.activation, config.head_dim), (Activation::Silu, 96));
    let master = Quantization {
        linear_class: LinearClass::AutoBitLinear,
        mode: QuantizationMode::Online,
        linear_norm_eps: None,
        shards: 1,
        activation_group: None,
    };
    assert_eq!(config.quantization, master);
    assert_eq!(config.rope.theta, 10_000.0);
}

/// The spelling of 1bitLLM's remote code leaves out what Llama's configuration has as default.
#[test]
fn the_older_bitnet_has_llamas_defaults() {
    let config = bitnet(r#", "weight_bits": 1.58, "input_bits": 8"#).unwrap();
    assert_eq!((config.activation, config.sub_norms), (Activation::Silu, true));
    assert_eq!((config.vocab_size, config.kv_heads, config.norm_eps), (32_000, 32, 1e-6));
}

#[test]
fn qwen3_has_norms_of_its_heads() {
    let config = parse(r#"{"model_type": "qwen3"}"#).unwrap();
    assert_eq!(config.architecture, "Qwen3ForCausalLM");
    assert!(config.head_norms && !config.sub_norms && !config.tied_head && !config.attention_bias);
    assert_eq!((config.heads, config.kv_heads, config.head_dim), (32, 32, 128));
    assert_eq!((config.bos_token, &config.eos_tokens[..]), (None, &[][..]));
    // The published 4B: heads wider together than the hidden states.
    let config = parse(
        r#"{"architectures": ["Qwen3ForCausalLM"], "hidden_size": 2560, "head_dim": 128,
        "num_attention_heads": 32, "num_key_value_heads": 8, "intermediate_size": 9728,
        "rope_theta": 1000000, "sliding_window": null, "use_sliding_window": false,
        "max_window_layers": 36, "tie_word_embeddings": true, "eos_token_id": 151645}"#,
    );
    let config = config.unwrap();
    assert_eq!((config.query_width(), config.kv_width()), (4096, 1024));
    assert_eq!((config.tied_head, config.rope.theta), (true, 1_000_000.0));
}

#[test]
fn floats_without_a_quantization_are_ternary_themselves() {
    let plain = |shards| Quantization {
        linear_class: LinearClass::BitLinear,
        mode: QuantizationMode::FakeQuantized,
        linear_norm_eps: None,
        shards,
        activation_group: Some(128),
    };
    for (text, shards) in [
        (r#"{"model_type": "qwen3"}"#, 1),
        (r#"{"model_type": "llama", "quantization_config": null}"#, 1),
        (r#"{"model_type": "llama", "pretraining_model_parallel": 6}"#, 6),
    ] {
        assert_eq!(parse(text).unwrap().quantization, plain(shards), "{text}");
    }
}

#[test]
fn groups_of_activations_are_read_where_they_are_said() {
    let group = |group: &str| {
        let text = format!(r#", "quantization_config": {{"quant_method": "bitnet"{group}}}"#);
        bitnet(&text).map(|config| config.quantization.activation_group)
    };
    assert_eq!(group(""), Ok(None));
    assert_eq!(group(r#", "activation_group": "row""#), Ok(None));
    assert_eq!(group(r#", "activation_group": 32"#), Ok(Some(32)));
    for bad in ["0", "33", "-1", "\"column\"", "1000000000000"] {
        let error = group(&format!(r#", "activation_group": {bad}"#)).unwrap_err().to_string();
        assert!(error.contains("activation_group") && error.contains("multiple of 32"), "{error}");
    }
    let text = r#"{"model_type": "qwen3", "quantization":
        {"group_size": 64, "bits": 2, "activation_group": "row"}}"#;
    assert_eq!(parse(text).unwrap().quantization.activation_group, None);
}

/// MLX writes its quantization twice.
#[test]
fn affine_codes_of_two_bits_are_read() {
    let codes = r#"{"group_size": 128, "bits": 2}"#;
    for names in [&["quantization"][..], &["quantization", "quantization_config"]] {
        let fields: Vec<_> = names.iter().map(|name| format!(r#""{name}": {codes}"#)).collect();
        let config = parse(&format!(r#"{{"model_type": "qwen3", {}}}"#, fields.join(", ")));
        let config = config.unwrap();
        assert_eq!(config.quantization.mode, QuantizationMode::Affine { group: 128 });
    }
}

#[test]
fn missing_fields_are_those_of_the_family() {
    let config = parse(r#"{"model_type": "bitnet"}"#).unwrap();
    assert_eq!((config.vocab_size, config.hidden_size), (128_256, 2560));
    assert_eq!((config.heads, config.kv_heads, config.head_dim), (20, 5, 128));
    assert_eq!((config.context_length, config.norm_eps), (2048, 1e-5));
    assert_eq!((config.bos_token, &config.eos_tokens[..]), (Some(128_000), &[128_001][..]));
    assert_eq!((config.rope.theta, config.tied_head), (500_000.0, false));
    let config = bitnet(r#", "num_key_value_heads": null, "bos_token_id": null"#).unwrap();
    assert_eq!((config.kv_heads, config.bos_token), (20, None));
}

#[test]
fn generation_decides_the_end_of_a_text() {
    let generation = GenerationDefaults {
        eos_tokens: Some(vec![128_001, 128_009]),
        ..GenerationDefaults::default()
    };
    let config = ModelConfig::parse(br#"{"model_type": "bitnet"}"#, &generation).unwrap();
    assert_eq!(config.eos_tokens, [128_001, 128_009]);
    assert_eq!(config.bos_token, Some(128_000));
}

#[test]
fn both_spellings_of_rope_are_read() {
    let llama3 = r#"{"rope_type": "llama3", "factor": 32.0, "low_freq_factor": 1.0,
        "high_freq_factor": 4.0, "original_max_position_embeddings": 8192}"#;
    let older = bitnet(&format!(r#", "rope_theta": 7.5, "rope_scaling": {llama3}"#)).unwrap();
    let newer = llama3.replace('{', r#"{"rope_theta": 7.5, "#);
    let newer = bitnet(&format!(r#", "rope_theta": 1.0, "rope_parameters": {newer}"#)).unwrap();
    assert_eq!((older.rope, older.rope.theta), (newer.rope, 7.5));
    let RopeScaling::Llama3 { factor, original_context, .. } = older.rope.scaling else {
        panic!("{:?}", older.rope);
    };
    assert_eq!((factor, original_context), (32.0, 8192));
    let yarn = r#""type": "yarn", "factor": 4.0, "original_max_position_embeddings": 16384"#;
    let yarn = bitnet(&format!(r#", "rope_scaling": {{{yarn}}}"#)).unwrap();
    let expected = RopeScaling::Yarn {
        factor: 4.0,
        beta_fast: 32.0,
        beta_slow: 1.0,
        original_context: 16_384,
        attention_factor: None,
    };
    assert_eq!(yarn.rope.scaling, expected);
    let typed = bitnet(r#", "rope_scaling": {"type": "default"}"#).unwrap();
    assert_eq!(typed.rope.scaling, RopeScaling::Default);
}

#[test]
fn what_is_not_supported_is_named() {
    for (text, what, found) in [
        (r#"{"architectures": ["GPT2LMHeadModel"]}"#, "architecture", "GPT2LMHeadModel"),
        (r#"{"model_type": "qwen2"}"#, "model_type", "qwen2"),
        (r#"{"model_type": "qwen3", "use_sliding_window": true}"#, "use_sliding_window", "true"),
        (
            r#"{"model_type": "qwen3", "layer_types": ["full_attention", "sliding_attention"]}"#,
            "layer_types",
            "sliding_attention",
        ),
    ] {
        assert_unsupported(parse(text), what, found);
    }
    for (fields, what, found) in [
        (r#", "hidden_act": "gelu""#, "hidden_act", "gelu"),
        (r#", "rope_scaling": {"rope_type": "longrope"}"#, "rope_type", "longrope"),
        (
            r#", "rope_scaling": {"rope_type": "yarn", "mscale": 1.0}"#,
            "mscale",
            "a factor of its own",
        ),
        (r#", "rope_scaling": {"rope_type": "yarn", "truncate": false}"#, "truncate", "false"),
        (r#", "rope_scaling": {"type": "linear", "factor": 2.0}"#, "rope_type", "linear"),
        (r#", "partial_rotary_factor": 0.5"#, "partial_rotary_factor", "0.5"),
        (r#", "quantization_config": {"quant_method": "gptq"}"#, "quant_method", "gptq"),
        (r#", "quantization_config": {}"#, "quant_method", "none"),
        (r#", "quantization": {"bits": 4}"#, "bits of quantization", "4"),
        (r#", "quantization": {"bits": 1}"#, "bits of quantization", "1"),
        (r#", "quantization": {"bits": 2, "mode": "mxfp4"}"#, "mode of quantization", "mxfp4"),
        (r#", "quantization": {"bits": 2, "group_size": 96}"#, "group_size of quantization", "96"),
        (
            r#", "quantization": {"bits": 2, "lm_head": {"bits": 4}}"#,
            "quantization of a module by itself",
            "lm_head",
        ),
        (r#", "input_bits": 16"#, "input_bits", "16"),
        (r#", "weight_bits": 4"#, "weight_bits", "4"),
    ] {
        assert_unsupported(bitnet(fields), what, found);
    }
    for (field, found) in [
        (r#""linear_class": "linear""#, "linear"),
        (r#""quantization_mode": "later""#, "later"),
        (r#""modules_to_not_convert": ["lm_head", "o_proj"]"#, "o_proj"),
    ] {
        let what = field.split('"').nth(1).unwrap();
        let text = format!(r#", "quantization_config": {{"quant_method": "bitnet", {field}}}"#);
        assert_unsupported(bitnet(&text), what, found);
    }
}

fn assert_unsupported(config: Result<ModelConfig, CheckpointError>, expected: &str, name: &str) {
    match config.unwrap_err() {
        CheckpointError::UnsupportedModel { what, found, supported, .. } => {
            assert_eq!((what, found.as_str()), (expected, name));
            assert!(!supported.is_empty());
        }
        error => panic!("{error}"),
    }
}

#[test]
fn sizes_out_of_range_are_named() {
    for (field, value) in [
        ("hidden_size", "0"),
        ("hidden_size", "-64"),
        ("hidden_size", "64.5"),
        ("hidden_size", "132001"),
        ("intermediate_size", "18446744073709551616"),
        ("vocab_size", "1e9"),
        ("vocab_size", "\"many\""),
        ("num_hidden_layers", "65537"),
        ("num_attention_heads", "15"), // 2560 / 15
        ("num_key_value_heads", "3"),
        ("max_position_embeddings", "16777217"),
        ("head_dim", "127"),
        ("head_dim", "1026"),
        ("head_dim", "64"), // 20 × 64 is not 2560
        ("rms_norm_eps", "-1e-5"),
        ("rms_norm_eps", "1e300"),
        ("rope_theta", "0"),
        ("tie_word_embeddings", "1"),
        ("eos_token_id", "\"</s>\""),
        ("architectures", "\"BitNetForCausalLM\""),
        ("quantization_config", "[]"),
    ] {
        let error = bitnet(&format!(r#", "{field}": {value}"#)).unwrap_err();
        let named = matches!(&error, CheckpointError::Field { field: f, .. } if f == field);
        assert!(named, "{field} {value}: {error}");
    }
    let error = parse("{}").unwrap_err().to_string();
    assert_eq!(
        error,
        "config.json: `architectures` is absent, expected a list of one architecture"
    );
}

#[test]
fn incomplete_scaling_is_named() {
    for (scaling, field) in [
        (r#"{"factor": 2.0}"#, "rope_scaling.rope_type"),
        (r#"{"rope_type": "llama3"}"#, "rope_scaling.low_freq_factor"),
        (r#"{"rope_type": "yarn"}"#, "rope_scaling.factor"),
        (r#"{"rope_type": "yarn", "factor": 4}"#, "rope_scaling.original_max_position_embeddings"),
        (
            r#"{"rope_type": "llama3", "low_freq_factor": 4, "high_freq_factor": 4}"#,
            "rope_scaling.high_freq_factor",
        ),
    ] {
        let error = bitnet(&format!(r#", "rope_scaling": {scaling}"#)).unwrap_err();
        let named = matches!(&error, CheckpointError::Field { field: f, .. } if f == field);
        assert!(named, "{scaling}: {error}");
    }
}
