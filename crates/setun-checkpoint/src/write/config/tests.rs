//! Configurations written and read back.

use std::collections::{BTreeMap, BTreeSet};

use setun_ops::delta_net::DeltaNetShape;

use super::*;
use crate::config::{Hadamard, LinearClass, Quantization, RopeConfig, known_fields};

fn config() -> ModelConfig {
    ModelConfig {
        architecture: "LlamaForCausalLM".to_owned(),
        vocab_size: 263,
        hidden_size: 64,
        ffn_size: 132,
        layers: vec![Mixer::Attention; 3],
        heads: 4,
        kv_heads: 2,
        head_dim: 32,
        context_length: 512,
        activation: Activation::Silu,
        norm_eps: 1e-12,
        rope: RopeConfig {
            theta: 1_000_042.0,
            dimensions: 32,
            scaling: RopeScaling::Llama3 {
                factor: 8.0,
                low_freq_factor: 1.1,
                high_freq_factor: 4.0,
                original_context: 64,
            },
        },
        sub_norms: false,
        head_norms: false,
        attention_gate: false,
        unit_norms: false,
        tied_head: false,
        attention_bias: true,
        mlp_bias: true,
        quantization: Quantization {
            linear_class: LinearClass::BitLinear,
            mode: QuantizationMode::Online,
            linear_norm_eps: Some(1e-6),
            shards: 1,
            activation_group: Some(64),
        },
        hadamard: None,
        bos_token: None,
        eos_tokens: vec![2, 7],
    }
}

#[test]
fn what_is_written_is_read() {
    let bitnet = ModelConfig {
        architecture: "BitNetForCausalLM".to_owned(),
        head_dim: 16,
        activation: Activation::ReluSquared,
        rope: RopeConfig { theta: 10_000.0, dimensions: 16, scaling: RopeScaling::Default },
        sub_norms: true,
        tied_head: true,
        quantization: Quantization {
            linear_class: LinearClass::AutoBitLinear,
            mode: QuantizationMode::Offline,
            linear_norm_eps: None,
            shards: 1,
            activation_group: None,
        },
        bos_token: Some(1),
        eos_tokens: vec![],
        ..config()
    };
    let plain = Quantization {
        linear_class: LinearClass::BitLinear,
        mode: QuantizationMode::FakeQuantized,
        linear_norm_eps: None,
        shards: 3,
        activation_group: Some(128),
    };
    let trilm = ModelConfig { quantization: plain.clone(), ..config() };
    let qwen3 = ModelConfig {
        architecture: "Qwen3ForCausalLM".to_owned(),
        head_norms: true,
        rope: RopeConfig {
            theta: 1_000_000.0,
            dimensions: 32,
            scaling: RopeScaling::Yarn {
                factor: 4.0,
                beta_fast: 32.0,
                beta_slow: 1.0,
                original_context: 16_384,
                attention_factor: Some(1.25),
            },
        },
        quantization: Quantization { shards: 1, ..plain.clone() },
        ..config()
    };
    let affine = QuantizationMode::Affine { group: 128 };
    let mlx = ModelConfig {
        quantization: Quantization { mode: affine, shards: 1, ..plain },
        ..qwen3.clone()
    };
    let by_row = ModelConfig {
        quantization: Quantization { activation_group: None, ..mlx.quantization.clone() },
        ..mlx.clone()
    };
    for config in [config(), bitnet, trilm, qwen3, mlx, by_row] {
        assert_read_back(config);
    }
}

fn assert_read_back(config: ModelConfig) {
    let text = config_json(&config).unwrap();
    let read = ModelConfig::parse(text.as_bytes(), &GenerationDefaults::default());
    assert_eq!(read, Ok(config), "{text}");
    assert_eq!(known_fields::warning(text.as_bytes()), Ok(None), "{text}");
}

/// Stored norms, orders of heads and rotations have fields that transformers does not know.
#[test]
fn a_hybrid_is_read_back() {
    let shape = DeltaNetShape {
        key_heads: 2,
        value_heads: 6,
        key_dim: 32,
        value_dim: 64,
        kernel: 3,
        order: HeadOrder::Grouped,
        output_order: HeadOrder::Grouped,
    };
    let tiled = DeltaNetShape { order: HeadOrder::Tiled, ..shape };
    let hybrid = ModelConfig {
        architecture: "Qwen3_5ForCausalLM".to_owned(),
        layers: vec![Mixer::DeltaNet(shape), Mixer::Attention, Mixer::DeltaNet(shape)],
        rope: RopeConfig { theta: 1e7, dimensions: 10, scaling: RopeScaling::Default },
        head_norms: true,
        attention_gate: true,
        unit_norms: true,
        quantization: Quantization {
            linear_class: LinearClass::BitLinear,
            mode: QuantizationMode::FakeQuantized,
            linear_norm_eps: None,
            shards: 1,
            activation_group: Some(128),
        },
        ..config()
    };
    let hadamard = Hadamard {
        block: 4,
        signs: BTreeMap::from([(4, vec![1.0, -1.0, -1.0, 1.0]), (8, vec![-1.0; 8])]),
        layers: BTreeSet::from(["lm_head".to_owned(), "model.layers.1.mlp.up_proj".to_owned()]),
        embedding: true,
    };
    let rotated = ModelConfig {
        layers: vec![Mixer::Attention, Mixer::DeltaNet(tiled), Mixer::DeltaNet(tiled)],
        unit_norms: false,
        hadamard: Some(hadamard.clone()),
        ..hybrid.clone()
    };
    let unsigned = Hadamard { signs: BTreeMap::new(), embedding: false, ..hadamard };
    let both = DeltaNetShape { output_order: HeadOrder::Tiled, ..tiled };
    let folded = ModelConfig {
        layers: vec![Mixer::DeltaNet(both); 3],
        hadamard: Some(unsigned),
        ..rotated.clone()
    };
    for config in [hybrid, rotated, folded] {
        assert_read_back(config);
    }
}

#[test]
fn generation_defaults_are_read_back() {
    let some = GenerationDefaults {
        do_sample: Some(true),
        temperature: Some(0.7),
        top_k: Some(40),
        min_p: Some(0.05),
        eos_tokens: Some(vec![2]),
        ..GenerationDefaults::default()
    };
    for defaults in [some, GenerationDefaults::default()] {
        let text = generation_config_json(&defaults).unwrap();
        assert_eq!(GenerationDefaults::parse(text.as_bytes()), Ok(defaults), "{text}");
    }
}
