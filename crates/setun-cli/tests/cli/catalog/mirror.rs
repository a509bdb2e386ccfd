//! A pull of each entry from a mirror under its short name, and a text of it.

use std::{fs, path::Path};

use serde_json::{Value, json};
use setun::hub::{CatalogEntry, Digest, catalog};

use super::repository::{Repository, repository};
use crate::{
    models::{in_store, outcome},
    server::Server,
    support::Outcome,
};

const COMMIT: &str = "0123456789abcdef0123456789abcdef01234567";

fn has_end(name: &str, end: &str) -> bool {
    Path::new(name).extension().is_some_and(|found| found == end)
}

/// Puts a repository on a server, as a hub has it.
pub(super) fn put(server: &Server, model: &str, files: &Repository) {
    let sibling = |(name, bytes): &(String, Vec<u8>)| {
        let size = bytes.len();
        let is_large = has_end(name, "safetensors") || has_end(name, "gguf");
        server.put(&format!("/{model}/resolve/{COMMIT}/{name}"), bytes.clone(), "\"first\"");
        let mut entry = json!({"rfilename": name, "size": size});
        if is_large {
            let sha256 = Digest::of(bytes).to_string();
            entry["lfs"] = json!({"sha256": sha256, "size": size, "pointerSize": 130});
        }
        entry
    };
    let siblings: Vec<_> = files.iter().map(sibling).collect();
    let list = json!({"sha": COMMIT, "siblings": siblings, "cardData": {"license": "mit"}});
    for revision in ["main", COMMIT] {
        let path = format!("/api/models/{model}/revision/{revision}?blobs=true");
        server.put(&path, list.to_string(), "\"list\"");
    }
}

/// The command with a store and the server as its hub, and something to read.
fn at(home: &tempfile::TempDir, server: &Server, args: &[&str], input: &[u8]) -> Outcome {
    let mut command = in_store(home, args);
    command.env("HF_ENDPOINT", server.at(""));
    let file = home.path().join("input");
    fs::write(&file, input).expect("a file");
    command.stdin(fs::File::open(file).expect("a file"));
    outcome(command)
}

#[test]
fn each_entry_is_pulled_by_its_short_name_and_runs() {
    let server = Server::start();
    for entry in catalog() {
        put(&server, &entry.repository, &repository(entry));
        let (home, name) = (tempfile::tempdir().expect("a folder"), entry.name.as_str());
        let pulled = at(&home, &server, &["models", "pull", "--json", name], b"");
        assert_eq!((pulled.status, &*pulled.stderr), (Some(0), ""), "{name}");
        let path: Value = serde_json::from_str(&pulled.stdout).expect("JSON");
        let path = path["path"].as_str().expect("a path");
        assert_eq!(has_end(path, "gguf"), entry.format == "gguf", "{path}");

        assert_runs(entry, &home, &server);
        let estimate = at(&home, &server, &["inspect", "--estimate", "--json", name], b"");
        assert_eq!(estimate.status, Some(0), "{name}: {}", estimate.stderr);
        let listed = at(&home, &server, &["models", "search", "--json", name], b"");
        let listed: Value = serde_json::from_str(&listed.stdout).expect("JSON");
        let is_pulled = |entry: &&Value| entry["name"] == name && entry["pulled"] == true;
        assert_eq!(
            listed.as_array().expect("a list").iter().filter(is_pulled).count(),
            1,
            "{name}"
        );
    }
}

/// A chat, or a text of a model without a chat template.
fn assert_runs(entry: &CatalogEntry, home: &tempfile::TempDir, server: &Server) {
    let name = entry.name.as_str();
    let chats = entry.chat_template.is_some();
    let (command, input) = if chats { ("chat", "Hello\n") } else { ("run", "Hello") };
    let ran = at(home, server, &[command, "--model", name, "--max-tokens", "2"], input.as_bytes());
    let warning = match (&entry.file, entry.family.as_str()) {
        // Qwen's files name one of the two tokens that end a text.
        (Some(file), "bonsai") => format!(
            "setun: {file}: token 4086, `<|endoftext|>`, ends a text as well, though the metadata \
             does not say so\n"
        ),
        _ => String::new(),
    };
    // A text that begins within thinking is shown beside the answer.
    let thinks = entry.chat_template.as_deref() == Some("qwen3.5");
    let shown = ran.stderr.strip_prefix(&warning).expect("the warning");
    assert_eq!((ran.status, shown.is_empty()), (Some(0), !thinks), "{name}: {}", ran.stderr);
    assert!(thinks || !ran.stdout.is_empty(), "{name}");
}
