//! `setun models search`, and what is said of a model that is not pulled.

use serde_json::Value;
use setun::hub::catalog;

use crate::{
    models::{in_store, outcome},
    support::Outcome,
};

fn run(args: &[&str]) -> Outcome {
    let home = tempfile::tempdir().expect("a folder");
    let mut command = in_store(&home, args);
    command.env("HF_ENDPOINT", "http://127.0.0.1:9");
    outcome(command)
}

#[test]
fn all_models_are_listed_with_size_and_licence() {
    let listed = run(&["models", "search"]).text();
    let mut lines = listed.lines();
    let title = lines.next().expect("a title");
    for column in [
        "name",
        "parameters",
        "download",
        "memory",
        "context",
        "licence",
        "chat template",
        "sampling",
    ] {
        assert!(title.contains(column), "{title}");
    }
    assert_eq!(lines.clone().count(), catalog().len());
    let line = lines.find(|line| line.starts_with("bitnet-2b-4t ")).expect("the model");
    for cell in ["2.4 B", "1.18 GB", "4096", "mit", "  bitnet  ", "--temperature 0.6 --top-p 0.9"] {
        assert!(line.contains(cell), "{line}");
    }
    let bonsai = run(&["models", "search", "ternary-bonsai-4b"]).text();
    assert!(bonsai.contains("  chatml  "), "{bonsai}");
    assert!(bonsai.ends_with("  --temperature 0.5 --top-p 0.85 --top-k 20\n"), "{bonsai}");
    assert!(!listed.contains("pulled"), "{listed}");
}

#[test]
fn words_choose_models_and_json_has_each_field() {
    let found: Value =
        serde_json::from_str(&run(&["models", "search", "falcon3", "--json"]).text())
            .expect("JSON");
    let found = found.as_array().expect("a list");
    assert_eq!(found.len(), 4);
    for entry in found {
        assert_eq!(entry["family"], "falcon3");
        assert_eq!(entry["pulled"], false);
        assert!(entry["memory"].as_u64() > entry["bytes"].as_u64(), "{entry}");
        assert_eq!(entry["chat_template"], "falcon3");
        assert!(entry.get("sampling").is_none(), "{entry}");
    }
    let bonsai = run(&["models", "search", "bonsai", "8b", "--json"]).text();
    let bonsai: Value = serde_json::from_str(&bonsai).expect("JSON");
    let sampling = serde_json::json!({"temperature": 0.5, "top_p": 0.85, "top_k": 20});
    assert_eq!(bonsai[0]["sampling"], sampling);
    assert_eq!(run(&["models", "search", "no-such-model"]).text(), "");
}

#[test]
fn a_model_that_is_not_pulled_says_how_to_pull_it() {
    for (args, command) in [
        (&["run", "--model", "bitnet-2b-4t", "Hi"][..], "setun models pull bitnet-2b-4t"),
        (&["chat", "--model", "falcon3-1b"], "setun models pull falcon3-1b"),
        (&["inspect", "llama3-8b-1.58"], "setun models pull llama3-8b-1.58"),
        (
            &["run", "--model", "microsoft/bitnet-b1.58-2B-4T", "Hi"],
            "setun models pull microsoft/bitnet-b1.58-2B-4T",
        ),
        (&["run", "--model", "owner/name", "Hi"], "`setun models pull owner/name` pulls it"),
        (&["run", "--model", "hf:owner/name", "Hi"], "`setun models pull hf:owner/name` pulls it"),
        (
            &["serve", "--model", "owner/name", "--port", "0"],
            "`setun models pull owner/name` pulls it",
        ),
        (&["verify", "owner/name@v1"], "`setun models pull owner/name@v1` pulls it"),
        (&["convert", "owner/n:a.gguf", "b", "--to", "hf"], "`setun models pull owner/n:a.gguf`"),
        (&["run", "--draft", "owner/name", "Hi"], "`setun models pull owner/name` pulls it"),
    ] {
        let failure = run(args).failure();
        assert!(failure.contains("[not-found]") && failure.contains(command), "{failure}");
    }
}

#[test]
fn a_misspelled_name_suggests_one() {
    for args in [
        &["run", "--model", "bitnet-2b4t", "Hi"][..],
        &["models", "pull", "bitnet-2b4t"],
        &["models", "path", "bitnet-2b4t"],
    ] {
        let failure = run(args).failure();
        assert!(failure.contains("did you mean `bitnet-2b-4t`?"), "{failure}");
    }
    let near = ["run", "--model", "microsoft/bitnet-b1.58-2B4T", "Hi"];
    let failure = run(&near).failure();
    assert!(failure.contains("did you mean `microsoft/bitnet-b1.58-2B-4T`?"), "{failure}");
    let failure = run(&["run", "--model", "stories.gguf", "Hi"]).failure();
    assert!(!failure.contains("did you mean"), "{failure}");
}

#[test]
fn a_chat_without_a_template_says_what_to_type() {
    let failure = run(&["chat"]).failure();
    let expected = "setun: [unsupported-model] `setun-stories` has no chat template, so it cannot chat; \
                    type: setun models pull bitnet-2b-4t && setun chat --model bitnet-2b-4t\n";
    assert_eq!(failure, expected);
    assert!(catalog::find("bitnet-2b-4t").is_some_and(|entry| entry.chat_template.is_some()));
}

#[test]
fn an_alias_comes_before_the_catalog() {
    let home = tempfile::tempdir().expect("a folder");
    let run = |args: &[&str]| outcome(in_store(&home, args));
    run(&["models", "alias", "falcon3-1b", "o/n"]).text();
    let failure = run(&["models", "path", "falcon3-1b"]).failure();
    assert!(failure.contains("it stands for `o/n`"), "{failure}");
}
