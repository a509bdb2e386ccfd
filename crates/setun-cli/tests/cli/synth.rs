//! `setun synth`

use std::collections::BTreeMap;

use safetensors::{Dtype, SafeTensors};
use serde_json::Value;

use crate::support::setun;

/// The facts of the `small` shape: its files, its names and its sizes.
#[test]
fn a_folder_in_hugging_faces_layout() {
    let keep = tempfile::tempdir().expect("a folder");
    let folder = keep.path().join("small").to_string_lossy().into_owned();
    let args = ["synth", "--shape", "small", "--seed", "0", "--to", "hf", "--closed", "0.75"];
    assert_eq!(setun(&[&args[..], &[&folder]].concat()).text(), "");

    let config = std::fs::read(format!("{folder}/config.json")).expect("config.json");
    let config: Value = serde_json::from_slice(&config).expect("JSON");
    assert_eq!(config["architectures"], serde_json::json!(["BitNetForCausalLM"]));
    assert_eq!(config["hidden_act"], "relu2");
    assert_eq!(config["tie_word_embeddings"], true);
    let quantization = &config["quantization_config"];
    assert_eq!(quantization["linear_class"], "autobitlinear");
    assert_eq!(quantization["quantization_mode"], "offline");
    assert!(std::fs::exists(format!("{folder}/generation_config.json")).expect("a folder"));

    let bytes = std::fs::read(format!("{folder}/model.safetensors")).expect("weights");
    let tensors = SafeTensors::deserialize(&bytes).expect("a safetensors file");
    let shapes: BTreeMap<_, _> = tensors
        .tensors()
        .into_iter()
        .map(|(name, view)| (name, (view.dtype(), view.shape().to_vec())))
        .collect();
    assert_eq!(shapes.len(), 2 + 12 * (4 + 7 * 2));
    assert_eq!(shapes["model.embed_tokens.weight"], (Dtype::BF16, vec![32_000, 1024]));
    assert_eq!(shapes["model.layers.11.self_attn.k_proj.weight"], (Dtype::U8, vec![64, 1024]));
    assert_eq!(shapes["model.layers.11.mlp.down_proj.weight"], (Dtype::U8, vec![256, 2816]));
    assert_eq!(shapes["model.layers.0.mlp.gate_proj.weight_scale"], (Dtype::BF16, vec![1]));

    let out = format!("{folder}/logits.safetensors");
    let args = ["logits", "--model", &folder, "--ids", "1,2,31999", "--out", &out];
    assert_eq!(setun(&args).text(), "");
}
