//! `setun inspect` and `setun devices`

use serde_json::Value;

use crate::support::{STORIES, TINY, copy_without, model, setun, setun_reading};

fn inspect(args: &[&str]) -> Value {
    setun(&[&["inspect", "--json"], args].concat()).json()
}

/// What a bench of the shape takes is counted elsewhere (`tests/estimates.rs`); here it is that
/// of the numbers that are known beforehand.
#[test]
fn the_memory_of_a_shape_is_estimated_without_its_weights() {
    let bytes = |shape: &str, kv: &str, name: &str| {
        let report = inspect(&["--estimate", "--shape", shape, "--kv", kv]);
        assert_eq!((&report["model"], &report["context"]), (&shape.into(), &4096.into()));
        report[name].as_u64().expect("bytes")
    };
    for (shape, hidden, ffn, layers, kv_width) in [
        ("7b", 4096, 11_008, 32, 4096),
        ("30b", 6656, 17_920, 60, 6656),
        ("70b", 8192, 28_672, 80, 1024),
    ] {
        // Two bits a weight, and a table of 32,000 tokens.
        let ternary = layers * hidden * (2 * hidden + 2 * kv_width + 3 * ffn) / 4;
        let weights = bytes(shape, "f16", "weights");
        let table = 2 * 32_000 * hidden;
        assert!(
            (ternary + table..(ternary + 2 * table) * 21 / 20).contains(&weights),
            "{shape}: {weights}"
        );
        assert_eq!(bytes(shape, "f16", "cache"), 2 * 2 * 4096 * layers * kv_width);
    }
    assert!(bytes("7b", "int8", "cache") < bytes("7b", "f16", "cache") * 6 / 10);
    let text = setun(&["inspect", "--estimate", &model(TINY)]).text();
    assert!(text.contains(" kB") && !text.contains("0.00"), "{text}");
    setun(&["inspect", "--shape", "7b"]).wrong_usage("--estimate");
}

/// Bonsai 27B has 64 layers. 16 of them attend, with four KV heads of 256 columns. The other 48 have a state:
/// 48 heads of 128 by 128 floats, and the last rows of the convolution.
#[test]
fn state_and_cache_are_told_apart() {
    let report = inspect(&["--estimate", "--shape", "bonsai-27b", "--kv", "f16"]);
    let bytes = |name: &str| report[name].as_u64().expect("bytes");
    assert_eq!(bytes("position_cache"), 16 * 2 * 4 * 256 * 2);
    assert_eq!(bytes("cache"), bytes("context") * bytes("position_cache"));
    let matrices = 48 * 48 * 128 * 128 * 4;
    assert!((matrices..matrices * 6 / 5).contains(&bytes("state")), "{report}");
    let used = bytes("weights") + bytes("cache") + bytes("state") + bytes("steps");
    assert_eq!(bytes("total"), used);
    let text = setun(&["inspect", "--estimate", "--shape", "bonsai-27b"]).text();
    assert!(text.contains("state") && text.contains("a token"), "{text}");
    let plain = inspect(&["--estimate", "--shape", "bonsai-4b"]);
    assert_eq!((&plain["state"], &plain["context"]), (&0.into(), &32_768.into()));
}

#[test]
fn a_hybrid_model_has_the_devices_of_others() {
    let lines = |name: &str| {
        let text = setun(&["devices", "--model", &model(name)]).text();
        assert!(text.contains("cpu"), "{text}");
        text.lines().count()
    };
    assert_eq!(lines("../families/qwen35-r1/hf"), lines(TINY));
}

#[test]
fn numbers_are_those_of_the_configuration() {
    let report = inspect(&[&model(TINY)]);
    let config = &report["config"];
    for (field, expected) in [
        ("hidden_size", 64),
        ("intermediate_size", 176),
        ("num_hidden_layers", 3),
        ("num_attention_heads", 2),
        ("num_key_value_heads", 1),
        ("vocab_size", 263),
    ] {
        assert_eq!(config[field], expected, "{field}");
    }
    let kind = &report["kind"];
    assert_eq!((&kind["sub_norms"], &kind["head_norms"]), (&true.into(), &false.into()));
    // 64·64 for q and o, 64·32 for k and v, 64·176 for gate, up and down; three layers.
    let ternary = 3 * (2 * 64 * 64 + 2 * 64 * 32 + 3 * 64 * 176);
    assert_eq!(report["parameters"]["ternary"], ternary);
    assert_eq!(report["parameters"]["embedding"], 263 * 64);
    assert_eq!(report["parameters"]["head"], 0, "it is tied");
    let bits = report["bits_per_weight"].as_f64().expect("a number");
    assert!((2.0..16.0).contains(&bits), "{bits}");
    assert_eq!(report["tokenizer"], Value::Null);
    assert_eq!(report["chat_template"], false);
    let tensors = report["tensors"].as_array().expect("tensors");
    let q =
        tensors.iter().find(|tensor| tensor["name"] == "model.layers.0.self_attn.q_proj.weight");
    assert_eq!(q.expect("queries")["shape"], serde_json::json!([16, 64]));
    assert_eq!(report["warnings"], serde_json::json!([]));
}

#[test]
fn tokenizers_are_named() {
    let tokenizer = &inspect(&[&model(STORIES)])["tokenizer"];
    assert_eq!(tokenizer["kind"], "BPE");
    assert_eq!(tokenizer["vocab_size"], 512);
}

#[test]
fn the_plan_lists_every_operation() {
    let plan = &inspect(&[&model(TINY), "--plan"])["plan"];
    let ops: Vec<_> =
        plan["ops"].as_array().expect("ops").iter().map(|op| op["op"].as_str()).collect();
    let count = |name| ops.iter().filter(|op| **op == Some(name)).count();
    assert_eq!((count("embed"), count("attention"), count("gate"), count("head")), (1, 3, 3, 1));
    let text = setun(&["inspect", &model(TINY), "--plan"]).text();
    assert!(text.contains("int8 [1, 64]"), "{text}");
    assert!(text.contains("a ternary matrix [176, 64]"), "{text}");
    assert!(!text.contains("self_attn.q_proj.weight"), "the plan is what was asked for: {text}");
}

fn text_file(text: &str) -> (tempfile::TempDir, String) {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("text");
    std::fs::write(&path, text).expect("a file");
    (folder, path.to_string_lossy().into_owned())
}

/// Shares of each layer: gates, codes.
fn densities(report: &Value) -> Vec<(Option<f64>, Option<f64>)> {
    let layers = report["densities"]["layers"].as_array().expect("layers");
    layers.iter().map(|at| (at["gates_open"].as_f64(), at["down_nonzero"].as_f64())).collect()
}

/// Of the embedded model, whose trained gates are mostly closed; on each level the same.
#[test]
fn a_text_is_run_for_its_densities() {
    let (_keep, path) = text_file("Once upon a time there was a frog. It lived in a pond.");
    let report = inspect(&["--text", &path]);
    assert!(report["densities"]["tokens"].as_u64().expect("a count") > 10);
    let found = densities(&report);
    assert_eq!(found.len(), 6);
    for (gates, codes) in &found {
        let (gates, codes) = (gates.expect("relu²"), codes.expect("codes"));
        assert!(0.02 < codes && codes < gates && gates < 0.6, "{gates}, {codes}");
    }
    let devices = setun(&["devices", "--json"]).json();
    let levels = devices.as_array().expect("an array").iter().map(|device| &device["level"]);
    for level in levels.filter_map(Value::as_str).filter(|level| *level != "scalar") {
        assert_eq!(densities(&inspect(&["--text", &path, "--backend", level])), found, "{level}");
    }
}

/// A model of `SiLU` has no closed gates, and texts beyond its context are taken in pieces.
#[test]
fn densities_of_a_long_text_without_closed_gates() {
    let stories = model(STORIES);
    let text = "The dog ran to the park. ".repeat(200);
    let args = ["inspect", "--json", "--text", "-", &stories];
    let report = setun_reading(&args, text.as_bytes()).json();
    let tokens = report["densities"]["tokens"].as_u64().expect("a count");
    let context = report["config"]["max_position_embeddings"].as_u64().expect("a context");
    assert!(tokens > context, "{tokens} of {context}");
    let found = densities(&report);
    assert_eq!(found.len(), 8);
    assert!(found.iter().all(|(gates, codes)| gates.is_none() && codes.expect("codes") > 0.5));
    let table = setun_reading(&["inspect", "--text", "-", &stories], text.as_bytes()).text();
    assert!(table.contains("\n0      -           "), "{table}");
}

#[test]
fn texts_that_cannot_be_run() {
    let (_keep, path) = text_file("A frog");
    let error = setun(&["inspect", "--text", "/no/such/text"]).failure();
    assert!(error.contains("[not-found] cannot read `/no/such/text`"), "{error}");
    let error = setun(&["inspect", "--text", &path, &model(TINY)]).failure();
    assert!(error.contains("has no tokenizer"), "{error}");
    let error = setun_reading(&["inspect", "--text", "-"], b"frog \xff").failure();
    assert!(error.contains("standard input is not UTF-8: byte 5"), "{error}");
    let scalar = ["inspect", "--text", &path, "--backend", "scalar"];
    setun(&scalar).wrong_usage("`scalar` does not count");
}

#[test]
fn what_cannot_be_run_is_shown_as_far_as_it_goes() {
    let (_keep, folder) = copy_without(TINY, &[]);
    let config = folder.join("config.json");
    let text = std::fs::read_to_string(&config).expect("config.json");
    std::fs::write(&config, text.replace("\"num_hidden_layers\": 3", "\"num_hidden_layers\": 4"))
        .expect("a file");
    let outcome = setun(&["inspect", &folder.to_string_lossy()]);
    assert!(outcome.stdout.contains("model.layers.2.mlp.down_proj.weight"));
    let error = outcome.failure();
    assert!(error.contains("`model.layers.3.input_layernorm.weight` is missing"), "{error}");

    std::fs::write(&config, text.replace("\"num_hidden_layers\": 3", "\"num_hidden_layers\": 2"))
        .expect("a file");
    let text = setun(&["inspect", &folder.to_string_lossy()]).text();
    let warning = "warning: tensor `model.layers.2.input_layernorm.weight` has no use";
    assert!(text.contains(warning), "{text}");
}

#[test]
fn devices_are_listed() {
    let devices = setun(&["devices", "--json"]).text();
    let devices: Vec<Value> = serde_json::from_str(&devices).expect("JSON");
    assert!(devices.iter().all(|info| info["device"] == "cpu"));
    assert_eq!(devices.last().expect("one at least")["level"], "scalar");
    assert_eq!(devices.iter().filter(|info| info["chosen"] == true).count(), 1);
    let table = setun(&["devices"]).text();
    assert_eq!(table.lines().count(), devices.len() + 1);
    assert!(table.contains("chosen by auto"), "{table}");
}
