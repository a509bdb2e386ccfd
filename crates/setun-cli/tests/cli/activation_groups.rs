//! The option `--activation-group` of the commands that load a model.

use std::fs;

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::support::{STORIES, copy_without, model, setun, story};

/// The file of logits that a command writes.
fn logits(folder: &str, more: &[&str]) -> Vec<u8> {
    let keep = tempfile::tempdir().expect("a folder");
    let out = keep.path().join("logits.safetensors");
    let args = ["logits", "--model", folder, "--ids", "1,403,407,261,378", "--out"];
    setun(&[&args[..], &[&out.to_string_lossy()], more].concat()).text();
    fs::read(out).expect("logits")
}

#[test]
fn logits_are_those_of_a_model_that_says_the_same() {
    let mut all = vec![];
    for group in ["row", "32", "64"] {
        let key = group.parse::<u64>().map_or(json!(group), |columns| json!(columns));
        let (_keep, folder) = with_group(&key);
        let expected = logits(&folder, &[]);
        let found = logits(&model(STORIES), &["--activation-group", group]);
        assert!(found == expected, "{group}");
        all.push(found);
    }
    assert!(all[0] == logits(&model(STORIES), &[]), "the default is the model's");
    assert!(all[0] != all[1] && all[1] != all[2]);
}

#[test]
fn every_command_with_a_model_refuses_other_numbers() {
    let stories = model(STORIES);
    for args in [
        &["run", "Hello"][..],
        &["chat"],
        &["serve"],
        &["bench"],
        &["score", "Hello"],
        &["classify", "Hello"],
        &["embed", "Hello"],
        &["logits", "--ids", "1", "--out", "x"],
        &["perplexity", "--text", "-"],
    ] {
        for group in ["48", "0", "256", "rows"] {
            let option = ["--model", &stories, "--activation-group", group];
            let words =
                format!("invalid value '{group}' for '--activation-group <COLUMNS>': expected");
            let outcome = setun(&[args, &option].concat());
            assert!(outcome.stderr.contains("one of row, 32, 64, 128"), "{}", outcome.stderr);
            outcome.wrong_usage(&words);
        }
    }
}

/// A file says it for all commands, and the command line comes before it.
#[test]
fn the_command_line_comes_before_a_configuration() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("setun.toml");
    fs::write(&file, "[memory]\nactivation_group = 32\n").expect("a file");
    let path = file.to_string_lossy();
    let events = |more: &[&str]| {
        let args = ["--max-tokens", "8", "--temperature", "0", "--json", "--logprobs"];
        let lines = story(&args, more).lines();
        lines.iter().map(|event| event["logprob"].to_string()).collect::<Vec<_>>()
    };
    let by_flag = events(&["--activation-group", "32"]);
    assert_eq!(events(&["--config", &path]), by_flag);
    let row = events(&["--config", &path, "--activation-group", "row"]);
    assert_eq!(row, events(&[]));
    assert_ne!(row, by_flag);
}

#[test]
fn the_cost_of_narrow_groups_can_be_measured() {
    let bench = |folder: &str, more: &[&str]| {
        let args = ["bench", "--model", folder, "--prompt", "20", "--generate", "24", "--repeat"];
        setun(&[&args[..], &["1", "--json"], more].concat()).lines().remove(0)
    };
    let stories = model(STORIES);
    let hash = |more: &[&str]| bench(&stories, more)["tokens_hash"].clone();
    let (_keep, folder) = with_group(&json!(32));
    let expected = bench(&folder, &[])["tokens_hash"].clone();
    assert!(expected.is_string() || expected.is_number(), "{expected}");
    assert_eq!(hash(&["--activation-group", "32"]), expected);
    assert_eq!(hash(&["--activation-group", "row"]), hash(&[]));
    let streams = bench(&stories, &["--streams", "1", "--activation-group", "32"]);
    assert_eq!(streams["tokens_hash"], Value::Null, "it has none");
}

#[test]
fn inspect_takes_them_where_something_runs_or_is_estimated() {
    let stories = model(STORIES);
    let folder = tempfile::tempdir().expect("a folder");
    let text = folder.path().join("text");
    fs::write(&text, "Once upon a time there was a frog.").expect("a file");
    let text = text.to_string_lossy();
    let shares = |folder: &str, more: &[&str]| {
        let args = ["inspect", folder, "--text", &text, "--json"];
        setun(&[&args[..], more].concat()).json()["densities"].clone()
    };
    let (_keep, narrow) = with_group(&json!(32));
    let expected = shares(&narrow, &[]);
    assert!(expected["layers"].is_array());
    assert_eq!(shares(&stories, &["--activation-group", "32"]), expected);
    assert_ne!(shares(&stories, &[]), expected);
    let estimate = |folder: &str, more: &[&str]| {
        let mut report =
            setun(&[&["inspect", folder, "--estimate", "--json"], more].concat()).json();
        report["model"].take();
        report
    };
    assert_eq!(estimate(&stories, &["--activation-group", "32"]), estimate(&narrow, &[]));
    setun(&["inspect", &stories, "--activation-group", "32"])
        .wrong_usage("--activation-group needs --text or --estimate");
}

/// A folder whose configuration names a group.
fn with_group(group: &Value) -> (TempDir, String) {
    let (keep, folder) = copy_without(STORIES, &[]);
    let file = folder.join("config.json");
    let mut config: Value =
        serde_json::from_slice(&fs::read(&file).expect("a file")).expect("JSON");
    config["quantization_config"]["activation_group"] = group.clone();
    fs::write(&file, config.to_string()).expect("a file");
    (keep, folder.to_string_lossy().into_owned())
}
