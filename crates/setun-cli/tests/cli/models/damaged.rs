//! `setun models list` and `verify` of a store with a damaged model.

use super::{in_store, outcome};
use crate::{
    server::Server,
    support::{STORIES, TINY, model},
};

/// `verify` says of tokenizer and template what `run` would.
#[test]
fn models_that_cannot_be_used_are_named() {
    let server = Server::start();
    let refuses = r#"{"chat_template": "{{ raise_exception('not without a system message') }}"}"#;
    for entry in std::fs::read_dir(model(STORIES)).expect("the model").flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        let bytes = std::fs::read(entry.path()).expect("its bytes");
        for folder in ["a", "b"] {
            let bytes = match (folder, &*name) {
                ("a", "tokenizer_config.json") => refuses.as_bytes().to_vec(),
                ("b", "tokenizer.json") => b"{\"model\": 3}".to_vec(),
                _ => bytes.clone(),
            };
            server.put(&format!("/{folder}/{name}"), bytes, "\"t\"");
        }
    }
    let home = tempfile::tempdir().expect("a folder");
    let run = |args: &[&str]| outcome(in_store(&home, args));
    let [a, b] = ["/a", "/b"].map(|path| server.at(path));
    for name in [&a, &b] {
        run(&["models", "pull", name]).text();
    }
    let found = run(&["models", "verify", &a]).text();
    assert!(found.contains("warning: the chat template refuses this conversation"), "{found}");
    let refused = run(&["run", "--model", &b, "Once"]).failure();
    let reason = refused.trim().split_once('[').expect("a code").1;
    assert!(reason.contains("`model` of tokenizer.json is 3, expected an object"), "{refused}");
    for args in [&["models", "verify"][..], &["models", "verify", "--json"]] {
        let found = run(args);
        assert!(found.stdout.contains("/_/a") && found.stdout.contains("good"), "{}", found.stdout);
        assert!(found.stdout.contains(&reason[..40]), "{}", found.stdout);
        let error = found.failure();
        assert!(error.contains("[bad-checkpoint] cannot be used: "), "{error}");
        assert!(error.contains("/_/b") && !error.contains("/_/a"), "{error}");
    }
}

#[test]
fn one_bad_model_hides_no_other_and_the_status_tells() {
    let server = Server::start();
    for entry in std::fs::read_dir(model(TINY)).expect("the model").flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        let bytes = std::fs::read(entry.path()).expect("its bytes");
        for folder in ["a", "b", "c"] {
            server.put(&format!("/{folder}/{name}"), bytes.clone(), "\"t\"");
        }
    }
    let home = tempfile::tempdir().expect("a folder");
    let run = |args: &[&str]| outcome(in_store(&home, &[&["models"], args].concat()));
    let [a, b, c] = ["/a", "/b", "/c"].map(|path| server.at(path));
    let folders = [&a, &b, &c].map(|name| run(&["pull", name]).text().trim().to_owned());
    std::fs::write(format!("{}/manifest.json", folders[0]), "{").expect("damage");
    std::fs::write(format!("{}/model.safetensors", folders[1]), "short").expect("damage");

    for args in [&["list"][..], &["list", "--json"], &["verify"], &["verify", "--json"]] {
        let found = run(args);
        assert!(found.stdout.contains("/_/c") && !found.stdout.contains("/_/a"), "{args:?}");
        let error = found.failure();
        assert!(error.contains("[bad-checkpoint] damaged: "), "{error}");
        assert!(error.contains("/_/a (its manifest is damaged: EOF"), "{error}");
        assert!(error.contains("/_/b (`model.safetensors` has 5 bytes, expected "), "{error}");
        assert!(error.contains("`setun models pull --verify NAME` repairs"), "{error}");
    }
    // Each by its name.
    let refused = outcome(in_store(&home, &["run", "--model", &b, "Once"])).failure();
    assert!(refused.contains("[bad-checkpoint]") && refused.contains("has 5 bytes"), "{refused}");
    assert!(refused.contains(&format!("`setun models pull {b}` repairs it")), "{refused}");
    assert!(run(&["verify", &b]).failure().contains("has 5 bytes"));
    assert!(run(&["verify", &c]).text().contains("good"));
    run(&["pull", &a]).text();
    run(&["pull", &b]).text_with("model.safetensors has wrong bytes");
    assert_eq!(run(&["verify"]).text().matches("good").count(), 9);
    assert_eq!(run(&["list"]).text().lines().count(), 4);
}
