//! Keys and orders that the fixtures do not show.

use super::*;
use crate::{config::Hadamard, generation::GenerationDefaults};

/// A hybrid model of these layers, of which six value heads share two key heads.
fn config(layers: &[&str]) -> ModelConfig {
    let text = serde_json::json!({
        "architectures": ["Qwen3_5ForCausalLM"],
        "vocab_size": 8,
        "hidden_size": 64,
        "intermediate_size": 64,
        "num_hidden_layers": layers.len(),
        "layer_types": layers,
        "num_attention_heads": 2,
        "num_key_value_heads": 1,
        "head_dim": 32,
        "linear_num_key_heads": 2,
        "linear_num_value_heads": 6,
        "linear_key_head_dim": 4,
        "linear_value_head_dim": 4,
    });
    let text = text.to_string();
    ModelConfig::parse(text.as_bytes(), &GenerationDefaults::default()).unwrap()
}

const LINEAR: &str = "linear_attention";

#[test]
fn what_the_keys_cannot_say_is_refused_by_name() {
    let refused = |config: &ModelConfig| {
        write_keys(&mut Values::default(), config, str::to_owned).unwrap_err().to_string()
    };
    let attends = refused(&config(&["full_attention"]));
    assert!(attends.contains("without a delta net"), "{attends}");
    let mut other = config(&[LINEAR, LINEAR]);
    other.attention_bias = true;
    assert!(refused(&other).contains("with biases"));
    let shape = DeltaNetShape { kernel: 3, ..other.layers[0].delta_net().unwrap() };
    other.layers[1] = Mixer::DeltaNet(shape);
    assert!(refused(&other).contains("of several shapes"));
}

/// Rotated output matrices keep their columns, and no file may have both kinds.
#[test]
fn columns_of_output_matrices_move_unless_they_are_rotated() {
    let mut config = config(&[LINEAR, LINEAR]);
    let name = |layer: usize| format!("model.layers.{layer}.{OUTPUT}");
    let is_moved = |config: &ModelConfig, layer| {
        Change::of(&format!("{}.weight", name(layer)), config).heads.is_some()
    };
    assert_eq!(is_output_grouped(&config), Ok(false));
    assert!(is_moved(&config, 0));
    let rotation = |layers: &[usize]| {
        let (layers, signs) = (layers.iter().map(|layer| name(*layer)).collect(), [].into());
        Some(Hadamard { block: 4, signs, layers, embedding: false })
    };
    config.hadamard = rotation(&[0, 1]);
    assert_eq!(is_output_grouped(&config), Ok(true));
    assert!(!is_moved(&config, 0));
    config.hadamard = rotation(&[0]);
    let error = is_output_grouped(&config).unwrap_err().to_string();
    assert!(error.contains("not of layer 1's"), "{error}");
}

#[test]
fn rows_of_value_heads_move_alone() {
    let config = config(&[LINEAR]);
    let change = |part: &str| Change::of(&format!("model.layers.0.linear_attn.{part}"), &config);
    let gates: Vec<u8> = (0..6).collect();
    for part in ["in_proj_a.weight", "in_proj_b.weight", "A_log", "decay", "dt_bias"] {
        assert_eq!(change(part).rows(&gates, 6), Some(vec![0, 3, 1, 4, 2, 5]), "{part}");
    }
    assert_eq!(change("norm.weight").rows(&gates, 6), Some(gates));
    let channels: Vec<u8> = (0..40).collect(); // 8 of queries, 8 of keys, 24 of values
    let moved = change("conv1d.weight").rows(&channels, 40).unwrap();
    assert_eq!(moved[..20], channels[..20]);
    assert_eq!(moved[20..28], [28, 29, 30, 31, 20, 21, 22, 23]);
    assert_eq!(change("conv1d.weight").rows(&channels, 20), None, "other rows than heads have");
}

#[test]
fn sections_leave_no_pair_to_the_fourth_position() {
    assert_eq!(sections(32), [11, 11, 10, 0]);
    assert_eq!(sections(8), [3, 3, 2, 0]);
    for pairs in 0..40 {
        let sum: i32 = sections(pairs).iter().sum();
        assert_eq!(usize::try_from(sum), Ok(pairs));
    }
}

#[test]
fn an_interval_is_written_only_where_layers_keep_to_it() {
    assert_eq!(interval(&[true, true, true, false, true, true, true, false]), Some(4));
    assert_eq!(interval(&[true, true, false, true]), Some(3));
    assert_eq!(interval(&[false, false]), Some(1));
    assert_eq!(interval(&[true, false, false]), None);
    assert_eq!(interval(&[true, true]), None);
}

#[test]
fn tiled_heads_take_key_heads_in_turn() {
    let shape = DeltaNetShape {
        key_heads: 2,
        value_heads: 6,
        key_dim: 4,
        value_dim: 4,
        kernel: 4,
        order: HeadOrder::Grouped,
        output_order: HeadOrder::Grouped,
    };
    assert_eq!(tiled(shape), [0, 3, 1, 4, 2, 5]);
}
