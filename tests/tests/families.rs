//! Families that quantize in their own ways, against the float64 evaluation of
//! `fixtures/families/make.py`, on every level of the processor.

use std::{collections::BTreeMap, fs};

use setun::{CacheType, DeviceOptions, ErrorCode, Model, Source};
use setun_tests::{
    fixture,
    golden::{Tensors, max_difference},
    run::{Runner, bits, devices},
};

/// No int8 code is near a rounding tie.
const STRICT: f32 = 1e-4;

const MODELS: [&str; 4] = ["bitnet-1bitllm", "qwen3-packed", "qwen3-groups", "trilm-shards"];

#[test]
fn logits() {
    for model in MODELS {
        let folder = fixture("families").join(model);
        let golden = Tensors::read(&folder.join("golden.safetensors"));
        let (ids, expected) = (golden.ids("ids"), golden.floats("logits").expect("logits"));
        for device in devices() {
            let options = DeviceOptions {
                device: device.clone(),
                cache: CacheType::F32,
                ..DeviceOptions::default()
            };
            let opened = Model::open(&folder).expect("a model");
            assert_eq!(opened.weights().unused, [""; 0], "{model}: every tensor has a use");
            let mut runner = Runner::new(opened, options);
            let rows = runner.logits(&ids, ids.len());
            let difference = max_difference(&rows.concat(), &expected);
            assert!(difference <= STRICT, "{model} on {device}: {difference}");
            let pieces = runner.logits(&ids, 5);
            assert_eq!(bits(&pieces), bits(&rows), "{model} on {device}, cut into pieces");
        }
    }
}

/// The files of a model, one of its texts replaced.
fn edited(model: &str, file: &str, from: &str, to: &str) -> Result<Model, setun::Error> {
    let folder = fixture("families").join(model);
    let read = |name: &'static str| (name, fs::read(folder.join(name)).expect("a fixture"));
    let mut files: BTreeMap<_, _> = ["config.json", "model.safetensors"].map(read).into();
    let bytes = files.get_mut(file).expect("a file");
    let mut at = 0;
    while let Some(found) = bytes[at..].windows(from.len()).position(|w| w == from.as_bytes()) {
        at += found;
        bytes.splice(at..at + from.len(), to.bytes());
        at += to.len();
    }
    assert_ne!(at, 0, "{model}: no {from} in {file}");
    let files = files.iter().map(|(name, bytes)| (*name, bytes.as_slice())).collect();
    Model::from_files(Source::Folder, model, &files)
}

fn assert_fails(opened: Result<Model, setun::Error>, code: ErrorCode, says: &[&str]) {
    let error = opened.err().unwrap_or_else(|| panic!("opened, expected {says:?}"));
    let message = error.to_string();
    assert_eq!(error.code(), code, "{message}");
    for part in says {
        assert!(message.contains(part), "`{message}` does not say `{part}`");
    }
}

/// Both spellings occur under one architecture, so the tensors tell the family.
#[test]
fn a_missing_sub_norm_is_named_in_both_spellings() {
    for (from, to) in [("inner_attn_ln", "inner_attn_xx"), ("ffn_layernorm", "ffn_layerxxxx")] {
        let opened = edited("bitnet-1bitllm", "model.safetensors", from, to);
        let names: [&str; 2] = if from == "inner_attn_ln" {
            ["self_attn.inner_attn_ln.weight", "self_attn.attn_sub_norm.weight"]
        } else {
            ["mlp.ffn_layernorm.weight", "mlp.ffn_sub_norm.weight"]
        };
        assert_fails(opened, ErrorCode::BadCheckpoint, &names);
    }
}

#[test]
fn a_missing_norm_of_heads_is_named() {
    let opened = edited("qwen3-packed", "model.safetensors", "k_norm", "k_nxxx");
    assert_fails(opened, ErrorCode::BadCheckpoint, &["model.layers.0.self_attn.k_norm.weight"]);
}

#[test]
fn what_a_configuration_cannot_mean_is_refused() {
    for (model, from, to, says) in [
        (
            "qwen3-packed",
            r#""use_sliding_window": false"#,
            r#""use_sliding_window": true"#,
            "full attention",
        ),
        ("qwen3-packed", "quantization_config", "quantization_remark", "weight_scale"),
        ("bitnet-1bitllm", r#""input_bits": 8"#, r#""input_bits": 4"#, "input_bits"),
        ("bitnet-1bitllm", r#""weight_bits": 1"#, r#""weight_bits": 2"#, "weight_bits"),
    ] {
        let opened = edited(model, "config.json", from, to);
        assert_fails(opened, ErrorCode::UnsupportedModel, &[says]);
    }
}

/// A weight whose magnitude is not that of its group's others.
#[test]
fn a_float_that_is_not_ternary_is_named() {
    const TENSOR: &str = "model.layers.0.self_attn.q_proj.weight";
    for (model, columns, row, column) in [("qwen3-groups", 256, 5, 200), ("trilm-shards", 32, 9, 3)]
    {
        let folder = fixture("families").join(model);
        let read = |name: &'static str| (name, fs::read(folder.join(name)).expect("a fixture"));
        let mut files: BTreeMap<_, _> = ["config.json", "model.safetensors"].map(read).into();
        let bytes = files.get_mut("model.safetensors").expect("weights");
        let length = usize::from(u16::from_le_bytes([bytes[0], bytes[1]])); // of a small header
        let header: serde_json::Value =
            serde_json::from_slice(&bytes[8..8 + length]).expect("JSON");
        let start = header[TENSOR]["data_offsets"][0].as_u64().expect("an offset");
        let start = 8 + length + usize::try_from(start).expect("a small file");
        // 0.5 is above every scale.
        bytes[start + 2 * (row * columns + column)..][..2].copy_from_slice(&[0x00, 0x38]);
        let files = files.iter().map(|(name, bytes)| (*name, bytes.as_slice())).collect();
        let opened = Model::from_files(Source::Folder, model, &files);
        let place = format!("row {row}, column {column}");
        assert_fails(opened, ErrorCode::BadCheckpoint, &[TENSOR, &place]);
    }
}
