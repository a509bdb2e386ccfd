//! `setun inspect` and `setun devices`

use serde_json::Value;

use crate::support::{STORIES, TINY, copy_without, model, setun};

fn inspect(args: &[&str]) -> Value {
    let text = setun(&[&["inspect", "--json"], args].concat()).text();
    serde_json::from_str(&text).expect("JSON")
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
