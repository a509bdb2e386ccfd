//! `setun synth`

use std::{collections::BTreeMap, fs, path::Path};

use safetensors::{Dtype, SafeTensors};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::support::{model, setun, setun_reading};

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

/// A configuration of three layers, whose linear layers are stored as `quantization_config` says.
fn configuration(architecture: &str, extra: &Value) -> Value {
    let mut config = json!({
        "architectures": [architecture],
        "hidden_size": 64,
        "intermediate_size": 96,
        "num_hidden_layers": 3,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "head_dim": 16,
        "vocab_size": 100,
        "max_position_embeddings": 64,
        "tie_word_embeddings": false,
        "_a_field_of_its_own": "kept",
    });
    for (field, value) in extra.as_object().expect("an object") {
        config[field] = value.clone();
    }
    config
}

/// A folder with a configuration alone.
fn original(scratch: &TempDir, config: &Value) -> String {
    let folder = scratch.path().join("original");
    fs::create_dir_all(&folder).expect("a folder");
    fs::write(folder.join("config.json"), config.to_string()).expect("a file");
    folder.to_string_lossy().into_owned()
}

fn path(scratch: &TempDir, name: &str) -> String {
    scratch.path().join(name).to_string_lossy().into_owned()
}

/// Models in every storage that is made, each of which loads and runs.
#[test]
fn a_stand_in_has_the_configuration_of_its_model() {
    let packed = json!({"quantization_config": {"quant_method": "bitnet"}});
    let online = json!({
        "tie_word_embeddings": true,
        "torch_dtype": "float32",
        "quantization_config": {
            "quant_method": "bitnet",
            "linear_class": "autobitlinear",
            "quantization_mode": "online",
            "use_rms_norm": true,
        },
    });
    let biases = json!({"attention_bias": true, "mlp_bias": true, "torch_dtype": "float16"});
    for (architecture, extra, weight) in [
        ("LlamaForCausalLM", packed, (Dtype::U8, vec![24, 64])),
        ("BitNetForCausalLM", online, (Dtype::F32, vec![96, 64])),
        ("BitnetForCausalLM", json!({"weight_bits": 1}), (Dtype::BF16, vec![96, 64])),
        ("LlamaForCausalLM", biases, (Dtype::F16, vec![96, 64])),
        ("Qwen3ForCausalLM", json!({}), (Dtype::BF16, vec![96, 64])),
    ] {
        let scratch = tempfile::tempdir().expect("a folder");
        let config = configuration(architecture, &extra);
        let like = original(&scratch, &config);
        let (folder, out) = (path(&scratch, "hf"), path(&scratch, "logits.safetensors"));
        let args =
            ["synth", "--like", &like, "--set", "num_hidden_layers=2", "--to", "hf", &folder];
        assert_eq!(setun(&args).text(), "", "{architecture}");

        let written = fs::read(format!("{folder}/config.json")).expect("a file");
        let written: Value = serde_json::from_slice(&written).expect("JSON");
        let mut expected = config;
        expected["num_hidden_layers"] = 2.into();
        assert_eq!(written, expected);
        let bytes = fs::read(format!("{folder}/model.safetensors")).expect("weights");
        let tensors = SafeTensors::deserialize(&bytes).expect("a safetensors file");
        let gate = tensors.tensor("model.layers.1.mlp.gate_proj.weight").expect("a gate");
        assert_eq!((gate.dtype(), gate.shape().to_vec()), weight, "{architecture}");
        assert!(tensors.tensor("model.layers.2.mlp.gate_proj.weight").is_err());

        let args = ["logits", "--model", &folder, "--ids", "1,2,99", "--out", &out];
        assert_eq!(setun(&args).text(), "", "{architecture} {extra}");
        let verified = setun(&["verify", &folder]);
        assert_eq!(verified.status, Some(0), "{architecture} {extra}: {}", verified.stderr);
    }
}

#[test]
fn a_stand_in_takes_tokenizer_and_template_into_each_format() {
    let scratch = tempfile::tempdir().expect("a folder");
    let extra = json!({
        "hidden_size": 256,
        "intermediate_size": 256,
        "head_dim": 64,
        "vocab_size": 4096,
    });
    let like = original(&scratch, &configuration("Qwen3ForCausalLM", &extra));
    let fixture =
        concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/fixtures/golden/tokenizer-llama3");
    for file in ["tokenizer.json", "tokenizer_config.json"] {
        fs::copy(format!("{fixture}/{file}"), format!("{like}/{file}")).expect("a copy");
    }
    let mut texts = vec![];
    for (to, name) in
        [("hf", "hf"), ("setun", "m.setun"), ("gguf-tq2_0", "m.gguf"), ("gguf-i2_s", "n.gguf")]
    {
        let out = path(&scratch, name);
        let made = setun(&["synth", "--like", &like, "--seed", "3", "--to", to, &out]);
        assert_eq!(made.text(), "", "{to}");
        let args = ["chat", "--model", &out, "--max-tokens", "8", "--temperature", "0"];
        let chat = setun_reading(&args, b"Hello\n");
        assert_eq!((chat.status, &*chat.stderr), (Some(0), ""), "{to}");
        texts.push(chat.stdout);
    }
    assert!(!texts[0].trim().is_empty());
    assert!(texts.iter().all(|text| *text == texts[0]), "{texts:?}");
}

/// Matrices and tables by groups of columns, in each format that has them.
#[test]
fn a_stand_in_in_mlxs_layout_has_the_same_logits_in_each_format() {
    let scratch = tempfile::tempdir().expect("a folder");
    let extra = json!({
        "hidden_size": 256,
        "intermediate_size": 384,
        "head_dim": 64,
        "torch_dtype": "float16",
        "quantization": {"bits": 2, "group_size": 128},
    });
    let like = original(&scratch, &configuration("Qwen3ForCausalLM", &extra));
    let mut logits = vec![];
    for (to, name) in [
        ("mlx", "mlx"),
        ("setun", "m.setun"),
        ("gguf-q2_0", "a.gguf"),
        ("gguf-q2_0_g128", "b.gguf"),
        ("gguf-pq2_0", "c.gguf"),
        ("gguf-ptq1_0", "d.gguf"),
        ("hf", "hf"),
    ] {
        let (model, out) = (path(&scratch, name), path(&scratch, &format!("{name}.logits")));
        assert_eq!(setun(&["synth", "--like", &like, "--to", to, &model]).text(), "", "{to}");
        let args = ["logits", "--model", &model, "--ids", "1,2,99", "--out", &out];
        assert_eq!(setun(&args).text(), "", "{to}");
        let bytes = fs::read(&out).expect("logits");
        let tensors = SafeTensors::deserialize(&bytes).expect("a safetensors file");
        logits.push(tensors.tensor("logits").expect("logits").data().to_vec());
    }
    assert!(logits.iter().all(|found| *found == logits[0]));
    let bytes = fs::read(format!("{}/model.safetensors", path(&scratch, "mlx"))).expect("weights");
    let tensors = SafeTensors::deserialize(&bytes).expect("a safetensors file");
    let shape = |name: &str| {
        let found = tensors.tensor(name).expect(name);
        (found.dtype(), found.shape().to_vec())
    };
    assert_eq!(shape("lm_head.weight"), (Dtype::U32, vec![100, 16]));
    assert_eq!(shape("model.embed_tokens.biases"), (Dtype::F16, vec![100, 2]));
    assert_eq!(shape("model.layers.2.mlp.down_proj.scales"), (Dtype::F16, vec![256, 3]));
}

/// The text part of a model of text and images, as floats and in MLX's layout: other shapes of convolutions, and
/// norms without and with their 1.
#[test]
fn a_stand_in_of_a_hybrid_model_has_its_layers() {
    let mut text = configuration("Qwen3_5ForCausalLM", &json!({}));
    let net = json!({
        "hidden_size": 128,
        "intermediate_size": 128,
        "head_dim": 64,
        "num_hidden_layers": 4,
        "layer_types": ["linear_attention", "full_attention", "linear_attention", "full_attention"],
        "linear_num_key_heads": 2,
        "linear_num_value_heads": 4,
        "linear_key_head_dim": 64,
        "linear_value_head_dim": 64,
        "dtype": "float16",
    });
    for (field, value) in net.as_object().expect("an object") {
        text[field] = value.clone();
    }
    text.as_object_mut().expect("an object").remove("architectures");
    for (to, extra, conv, gain) in [
        ("hf", json!({}), vec![512, 1, 4], 0.0),
        ("mlx", json!({"quantization": {"bits": 2, "group_size": 128}}), vec![512, 4, 1], 1.0),
    ] {
        let scratch = tempfile::tempdir().expect("a folder");
        let mut config = json!({
            "architectures": ["Qwen3_5ForConditionalGeneration"],
            "model_type": "qwen3_5",
            "text_config": text,
        });
        for (field, value) in extra.as_object().expect("an object") {
            config[field] = value.clone();
        }
        let like = original(&scratch, &config);
        let (folder, out) = (path(&scratch, to), path(&scratch, "logits.safetensors"));
        let args = ["synth", "--like", &like, "--set", "num_hidden_layers=2", "--to", to, &folder];
        assert_eq!(setun(&args).text(), "", "{to}");

        let written = fs::read(format!("{folder}/config.json")).expect("a file");
        let written: Value = serde_json::from_slice(&written).expect("JSON");
        let kinds = json!(["linear_attention", "full_attention"]);
        assert_eq!(written["text_config"]["layer_types"], kinds, "{to}");
        let bytes = fs::read(format!("{folder}/model.safetensors")).expect("weights");
        let tensors = SafeTensors::deserialize(&bytes).expect("a safetensors file");
        let found = tensors.tensor("model.layers.0.linear_attn.conv1d.weight").expect("a tensor");
        assert_eq!(found.shape(), conv, "{to}");
        let norm = tensors.tensor("model.norm.weight").expect("a norm");
        let gains = norm.data().chunks_exact(2).map(|b| half::f16::from_le_bytes([b[0], b[1]]));
        assert!(gains.into_iter().all(|found| found.to_f32() == gain), "{to}");

        let args = ["logits", "--model", &folder, "--ids", "1,2,99", "--out", &out];
        assert_eq!(setun(&args).text(), "", "{to}");
    }
}

/// The file of a model's logits for three tokens.
fn logits(scratch: &TempDir, model: &str, name: &str) -> Vec<u8> {
    let out = path(scratch, name);
    let done = setun(&["logits", "--model", model, "--ids", "1,2,99", "--out", &out]);
    assert_eq!(done.status, Some(0), "{model}: {}", done.stderr);
    fs::read(out).expect("logits")
}

/// A pack of rotated weights with fewer layers: file of the rotation, modules and signs are those of its layers.
#[test]
fn a_stand_in_of_a_rotated_pack_is_one() {
    let scratch = tempfile::tempdir().expect("a folder");
    let (pack, out) = (model("../families/qwen35-hadamard-r2/mlx"), path(&scratch, "pack"));
    let args = ["synth", "--like", &pack, "--set", "num_hidden_layers=1", "--to", "mlx", &out];
    assert_eq!(setun(&args).text(), "");
    let bytes = fs::read(format!("{out}/model.safetensors")).expect("weights");
    let tensors = SafeTensors::deserialize(&bytes).expect("a safetensors file");
    let signs = tensors.tensor("model.layers.0.linear_attn.out_proj.signs").expect("signs");
    assert_eq!((signs.dtype(), signs.shape()), (Dtype::F32, &[512][..]));
    assert!(tensors.tensor("model.layers.0.linear_attn.in_proj_a.signs").is_err());
    let text = fs::read_to_string(format!("{out}/hadamard.json")).expect("a file");
    assert!(
        text.contains("layers.0.linear_attn.out_proj") && !text.contains("layers.1."),
        "{text}"
    );

    let logits = |model: &str, name: &str| logits(&scratch, model, name);
    let expected = logits(&out, "pack.safetensors");
    for to in ["gguf-ptq1_0", "gguf-pq2_0", "setun"] {
        let file = path(&scratch, if to == "setun" { "m.setun" } else { "m.gguf" });
        let like = ["--like", &pack, "--set", "num_hidden_layers=1"];
        let args = [&["synth", "--force", "--to", to][..], &like, &[&file]].concat();
        assert_eq!(setun(&args).text(), "", "{to}");
        assert!(logits(&file, &format!("{to}.safetensors")) == expected, "{to}");
    }
}

/// A hybrid with one scale a matrix fits types of 256 columns, and packed safetensors.
#[test]
fn a_hybrid_stand_in_has_the_same_logits_in_every_format() {
    let scratch = tempfile::tempdir().expect("a folder");
    let sizes = json!({
        "hidden_size": 256,
        "intermediate_size": 256,
        "head_dim": 64,
        "num_hidden_layers": 2,
        "layer_types": ["linear_attention", "full_attention"],
        "linear_num_key_heads": 2,
        "linear_num_value_heads": 4,
        "linear_key_head_dim": 64,
        "linear_value_head_dim": 64,
    });
    let like = original(&scratch, &configuration("Qwen3_5ForCausalLM", &sizes));
    let source = path(&scratch, "hf");
    assert_eq!(setun(&["synth", "--like", &like, "--to", "hf", &source]).text(), "");
    let logits = |model: &str, name: &str| logits(&scratch, model, name);
    let expected = logits(&source, "source.safetensors");
    for to in ["hf", "gguf-i2_s", "gguf-tq1_0", "gguf-tq2_0", "gguf-q2_0", "gguf-ptq1_0"] {
        let out =
            path(&scratch, &if to == "hf" { "packed".to_owned() } else { format!("{to}.gguf") });
        assert_eq!(setun(&["convert", &source, "--to", to, &out]).text(), "", "{to}");
        assert!(logits(&out, &format!("{to}.safetensors")) == expected, "{to}");
    }
    let packed = fs::read(path(&scratch, "packed/model.safetensors")).expect("weights");
    let tensors = SafeTensors::deserialize(&packed).expect("a safetensors file");
    let matrix = tensors.tensor("model.layers.0.linear_attn.in_proj_qkv.weight").expect("one");
    assert_eq!((matrix.dtype(), matrix.shape()), (Dtype::U8, &[128, 256][..]));
}

#[test]
fn a_stand_in_that_cannot_be_made_says_why() {
    let scratch = tempfile::tempdir().expect("a folder");
    let packed = json!({"quantization_config": {"quant_method": "bitnet"}});
    let like = original(&scratch, &configuration("LlamaForCausalLM", &packed));
    let out = path(&scratch, "out");
    let refused = |args: &[&str], words: &[&str]| {
        let common = ["synth", "--to", "hf", &out];
        let made = setun(&[&common[..], args].concat());
        assert_eq!(made.status, Some(2), "{args:?}: {}", made.stderr);
        for word in words {
            assert!(made.stderr.contains(word), "{args:?}: {}", made.stderr);
        }
        assert!(!Path::new(&out).exists(), "{args:?}");
    };
    refused(&["--like", &like, "--set", "hiden_size=8"], &["no field `hiden_size`", "hidden_size"]);
    refused(&["--like", &like, "--set", "hidden_size"], &["FIELD=VALUE"]);
    refused(&["--like", &like, "--set", "intermediate_size=90"], &["multiple of 4", "90"]);
    refused(&["--like", &like, "--shape", "small"], &["--shape", "--like"]);
    refused(&["--like", &like, "--closed", "0.5"], &["--closed", "--like"]);
    refused(&["--shape", "small", "--set", "vocab_size=8"], &["--set", "--shape"]);
    refused(&["--shape", "bonsai-4b", "--closed", "0.7"], &["--closed", "bonsai-4b", "SiLU"]);
    let mlx = setun(&["synth", "--shape", "small", "--to", "mlx", &out]);
    assert_eq!(mlx.status, Some(2), "{}", mlx.stderr);
    assert!(mlx.stderr.contains("--to mlx"), "{}", mlx.stderr);
    refused(&["--like", &format!("{like}/config.json")], &["no model in a folder"]);
    refused(&[], &["--shape", "--like"]);
    let mlx = json!({"quantization": {"bits": 2, "group_size": 64}});
    original(&scratch, &configuration("Qwen3ForCausalLM", &mlx));
    refused(&["--like", &like], &["weights in groups", "multiple of 64", "96"]);
    let rotated = json!({
        "model_type": "prism_hadamard_qwen35",
        "hadamard_config": "hadamard.json",
        "linear_num_key_heads": 1,
        "linear_num_value_heads": 1,
    });
    original(&scratch, &configuration("Qwen3_5ForCausalLM", &rotated));
    refused(&["--like", &like], &["has no hadamard.json"]);
    let pack = model("../families/qwen35-hadamard-r2/mlx");
    refused(&["--like", &pack, "--set", "hidden_size=256"], &["no rotation of 256 columns"]);
    fs::remove_file(format!("{like}/config.json")).expect("a file");
    refused(&["--like", &like], &["no config.json"]);
    original(&scratch, &configuration("LlamaForCausalLM", &packed));
    let above = setun(&["synth", "--like", &like, "--to", "hf", "--force", &like]);
    assert_eq!(above.status, Some(1), "{}", above.stderr);
    assert!(above.stderr.contains("file of the model that is read"), "{}", above.stderr);
}
