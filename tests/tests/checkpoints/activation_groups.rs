//! The option `activation_group` against a configuration that says the same, to the bit.

use std::{collections::BTreeMap, fs};

use serde_json::{Value, json};
use setun::{ActivationGroup, DeviceOptions, ErrorCode, Model, Source};
use setun_tests::{
    fixture,
    run::{Runner, bits, devices, exact},
};

/// What a configuration says, and the option's value.
const GROUPS: [(&str, ActivationGroup); 4] = [
    ("row", ActivationGroup::Row),
    ("32", ActivationGroup::Columns32),
    ("64", ActivationGroup::Columns64),
    ("128", ActivationGroup::Columns128),
];

const TOKENS: [u32; 9] = [1, 5, 3, 29, 17, 2, 8, 13, 30];

/// A model in a folder, its configuration edited.
fn edited(model: &str, edit: impl Fn(&mut Value)) -> Model {
    let read = |name: &str| fs::read(fixture(model).join(name)).expect("a fixture");
    let mut config: Value = serde_json::from_slice(&read("config.json")).expect("JSON");
    edit(&mut config["quantization_config"]);
    let (config, weights) = (config.to_string(), read("model.safetensors"));
    let files = [("config.json", config.as_bytes()), ("model.safetensors", &weights)];
    Model::from_files(Source::Folder, model, &BTreeMap::from(files)).expect(model)
}

/// The logits of a model with a key, and with the option in place of it.
fn compare(model: &str) {
    let with_key =
        |group: Value| edited(model, |config| config["activation_group"] = group.clone());
    for device in devices() {
        let logits = |model: Model, activation_group| {
            let options = DeviceOptions { activation_group, ..exact(&device) };
            bits(&Runner::new(model, options).logits(&TOKENS, 4))
        };
        let mut all = vec![];
        for (name, option) in GROUPS {
            let key = name.parse::<u64>().map_or(json!(name), |columns| json!(columns));
            let expected = logits(with_key(key), None);
            let found = logits(Model::open(fixture(model)).expect(model), Some(option));
            assert!(found == expected, "{model} on {device}, {name}");
            let opposite = if name == "row" { json!(32) } else { json!("row") };
            assert!(logits(with_key(opposite), Some(option)) == expected, "the option decides");
            all.push(expected);
        }
        assert!(all[1..].iter().all(|logits| *logits != all[0]), "{model} on {device}: by groups");
        assert_ne!(all[1], all[2], "{model} on {device}");
    }
}

#[test]
fn the_option_is_what_the_configuration_could_say() {
    compare("families/qwen3-outliers");
}

/// Matrices that one scale a row lets keep by columns are kept by rows with groups.
#[test]
fn a_model_with_sparse_inputs_takes_groups() {
    compare("golden/bitnet-h320-f432/packed");
}

#[test]
fn a_file_without_the_key_has_a_group_of_128() {
    let logits = |activation_group| {
        let bytes = fs::read(fixture("families/qwen3-bonsai/type142.gguf")).expect("a fixture");
        let files = BTreeMap::from([("type142.gguf", &*bytes)]);
        let source = Source::File("type142.gguf".into());
        let model = Model::from_files(source, "a model", &files).expect("a model");
        let options = DeviceOptions { activation_group, ..DeviceOptions::default() };
        bits(&Runner::new(model, options).logits(&TOKENS, 9))
    };
    let [row, _, wide, own] = GROUPS.map(|(_, group)| logits(Some(group)));
    let default = logits(None);
    assert!(own == default && row != default && wide != default);
}

#[test]
fn a_bias_before_the_scale_needs_a_row() {
    let open = || {
        edited("golden/llama-rmsnorm-bias/packed", |config| {
            config["linear_class"] = json!("autobitlinear");
        })
    };
    for (name, option) in GROUPS {
        let options = DeviceOptions { activation_group: Some(option), ..DeviceOptions::default() };
        let loaded = open().load_onto(options);
        if name == "row" {
            assert!(loaded.is_ok());
            continue;
        }
        let error = loaded.err().expect("refused");
        assert_eq!(error.code(), ErrorCode::BadOption);
        let words = format!("option `activation_group` is {name}, expected row: ");
        assert!(error.to_string().contains(&words), "{error}");
    }
}
