//! `setun models list` and `verify` of a store with a damaged model.

use super::{in_store, outcome};
use crate::{
    server::Server,
    support::{TINY, model},
};

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
    assert!(run(&["verify", &b]).failure().contains("has 5 bytes"));
    assert!(run(&["verify", &c]).text().contains("good"));
    run(&["pull", &a]).text();
    run(&["pull", &b]).text_with("model.safetensors has wrong bytes");
    assert_eq!(run(&["verify"]).text().matches("good").count(), 9);
    assert_eq!(run(&["list"]).text().lines().count(), 4);
}
