//! Configurations of hybrid models, and bad ones.

use serde_json::{Value, json};
use setun_ops::delta_net::{DeltaNetShape, HeadOrder};

use super::*;
use crate::{
    config::{ModelConfig, known_fields},
    generation::GenerationDefaults,
};

const SHAPE: DeltaNetShape = DeltaNetShape {
    key_heads: 16,
    value_heads: 48,
    key_dim: 128,
    value_dim: 128,
    kernel: 4,
    order: HeadOrder::Grouped,
    output_order: HeadOrder::Grouped,
};

fn parse(text: &Value) -> Result<ModelConfig, CheckpointError> {
    ModelConfig::parse(text.to_string().as_bytes(), &GenerationDefaults::default())
}

/// Qwen3.6-27B as text and as a part of a model of images, with these fields besides.
fn both(fields: Value) -> [Value; 2] {
    let mut text = json!({
        "model_type": "qwen3_5_text", "hidden_size": 5120, "intermediate_size": 17408,
        "num_hidden_layers": 64, "num_attention_heads": 24, "num_key_value_heads": 4,
        "head_dim": 256, "vocab_size": 248_320, "max_position_embeddings": 262_144,
        "attn_output_gate": true, "mamba_ssm_dtype": "float32", "linear_num_key_heads": 16,
        "linear_num_value_heads": 48, "mtp_num_hidden_layers": 1, "tie_word_embeddings": null,
        "rope_parameters": {"rope_type": "default", "rope_theta": 10_000_000, "mrope_section":
            [11, 11, 10], "mrope_interleaved": true, "partial_rotary_factor": 0.25},
    });
    if let (Value::Object(text), Value::Object(fields)) = (&mut text, fields) {
        text.extend(fields);
    }
    let wrapper = json!({
        "architectures": ["Qwen3_5ForConditionalGeneration"], "model_type": "qwen3_5",
        "tie_word_embeddings": true, "vision_config": {"depth": 27}, "image_token_id": 248_056,
        "eos_token_id": 248_046, "text_config": text,
    });
    let mut text = text;
    text["architectures"] = json!(["Qwen3_5ForCausalLM"]);
    text["tie_word_embeddings"] = json!(true);
    text["eos_token_id"] = json!(248_046);
    [text, wrapper]
}

#[test]
fn both_forms_of_a_hybrid_are_one_configuration() {
    let [text, wrapper] = both(json!({}));
    let config = parse(&text).unwrap();
    assert_eq!(parse(&wrapper).as_ref(), Ok(&config));
    assert_eq!(config.architecture, "Qwen3_5ForCausalLM");
    assert_eq!(config.layers.len(), 64);
    for (layer, mixer) in config.layers.iter().enumerate() {
        let expected = if layer % 4 == 3 { Mixer::Attention } else { Mixer::DeltaNet(SHAPE) };
        assert_eq!(*mixer, expected, "{layer}");
    }
    assert_eq!((config.rope.theta, config.rope.dimensions), (1e7, 64));
    assert!(config.head_norms && config.attention_gate && config.unit_norms && config.tied_head);
    assert!(config.hadamard.is_none() && !config.sub_norms && !config.attention_bias);
    assert_eq!(config.quantization.activation_group, Some(128));
    assert_eq!((&config.eos_tokens[..], config.norm_eps), (&[248_046][..], 1e-6));
    for text in [text, wrapper] {
        assert_eq!(known_fields::warning(text.to_string().as_bytes()), Ok(None));
    }
    let [_, mut wrapper] = both(json!({"logit_softcapping": 30.0}));
    let warning = known_fields::warning(wrapper.to_string().as_bytes()).unwrap().unwrap();
    assert!(warning.what.contains("logit_softcapping"), "{warning}");
    wrapper["text_config"]["tie_word_embeddings"] = json!(false);
    assert!(!parse(&wrapper).unwrap().tied_head, "the inner field goes before the outer");
}

#[test]
fn layers_are_listed_or_come_at_an_interval() {
    let kinds = |fields| {
        let config = parse(&both(fields)[0]).unwrap();
        let letter = |layer: &Mixer| if layer.delta_net().is_some() { 'l' } else { 'f' };
        config.layers.iter().map(letter).collect::<String>()
    };
    let three = json!({"num_hidden_layers": 3, "full_attention_interval": 2});
    assert_eq!(kinds(three), "lfl");
    let listed = ["full_attention", "full_attention", "linear_attention"];
    let listed =
        json!({"num_hidden_layers": 3, "full_attention_interval": 2, "layer_types": listed});
    assert_eq!(kinds(listed), "ffl");
}

#[test]
fn what_a_file_leaves_out_is_that_of_the_family() {
    let config = parse(&json!({"model_type": "qwen3_5_text"})).unwrap();
    let shape = DeltaNetShape { value_heads: 32, ..SHAPE };
    assert_eq!(config.layers[0], Mixer::DeltaNet(shape));
    assert_eq!((config.layers.len(), config.heads, config.kv_heads), (32, 16, 4));
    assert_eq!((config.head_dim, config.rope.dimensions), (256, 64));
    assert_eq!((config.vocab_size, config.ffn_size, config.rope.theta), (248_320, 12_288, 1e4));
}

/// One key head, or one value head for each: value heads have one order then.
#[test]
fn orders_that_are_the_same_have_one_name() {
    let order = |keys: usize, values: usize| {
        let fields = json!({"linear_num_key_heads": keys, "linear_num_value_heads": values,
            ORDER: "tiled", OUTPUT_ORDER: "grouped"});
        let shape = parse(&both(fields)[1]).unwrap().layers[0].delta_net().unwrap();
        (shape.order, shape.output_order)
    };
    assert_eq!(order(2, 4), (HeadOrder::Tiled, HeadOrder::Grouped));
    assert_eq!(order(1, 4), (HeadOrder::Grouped, HeadOrder::Grouped));
    assert_eq!(order(4, 4), (HeadOrder::Grouped, HeadOrder::Grouped));
}

#[test]
fn bad_hybrids_are_named() {
    for (fields, named, found) in [
        (json!({"layer_types": ["full_attention"]}), "layer_types", "1 types"),
        (json!({"linear_num_value_heads": 40}), "linear_num_value_heads", "multiple of"),
        (json!({"linear_num_value_heads": 16_000}), "linear_num_value_heads", "132000"),
        (json!({"linear_key_head_dim": 1025}), "linear_key_head_dim", "1024"),
        (json!({"linear_conv_kernel_dim": 1}), "linear_conv_kernel_dim", "from 2 to 16"),
        (json!({"linear_conv_kernel_dim": 17}), "linear_conv_kernel_dim", "16"),
        (json!({"full_attention_interval": 0}), "full_attention_interval", "from 1"),
        (json!({"attn_output_gate": false}), "attn_output_gate", "false"),
        (json!({"rope_parameters": {"partial_rotary_factor": 0.02}}), "partial_rotary", "even"),
        (json!({"rope_parameters": {"partial_rotary_factor": 1.5}}), "partial_rotary", "at most 1"),
        (json!({"delta_net_order": "random"}), "delta_net_order", "grouped or tiled"),
        (json!({"hadamard_config": "hadamard.json"}), "hadamard_config", "not rotated"),
    ] {
        for text in both(fields) {
            let error = parse(&text).unwrap_err().to_string();
            assert!(error.contains(named) && error.contains(found), "{error}");
        }
    }
    let mut types = vec!["full_attention"; 64];
    types[7] = "sliding_attention";
    let error = parse(&both(json!({"layer_types": types}))[0]).unwrap_err().to_string();
    assert!(error.contains("layer_types `sliding_attention`"), "{error}");
    let gate = parse(&json!({"model_type": "qwen3", "attn_output_gate": true}));
    assert!(gate.unwrap_err().to_string().contains("attn_output_gate `true`"));
    let text = parse(&json!({"model_type": "qwen3_5", "text_config": 3})).unwrap_err();
    assert!(text.to_string().contains("text_config"), "{text}");
}
