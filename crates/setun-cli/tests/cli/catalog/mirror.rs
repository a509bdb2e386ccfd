//! A pull of each entry from a mirror under its short name, and a text of it.
//!
//! The mirror has each repository with its real configuration, class of tokenizer and layout of
//! the chat template, but few and narrow layers, and a small vocabulary.

use std::{fs, path::Path};

use serde_json::{Value, json};
use setun::hub::{CatalogEntry, Digest, catalog};

use super::{
    configuration,
    tensors::{safetensors_header, tensors},
};
use crate::{
    models::{in_store, outcome},
    server::Server,
    support::{Outcome, setun},
};

const COMMIT: &str = "0123456789abcdef0123456789abcdef01234567";

const FIXTURES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/fixtures");

/// Files of a repository.
type Repository = Vec<(String, Vec<u8>)>;

fn fixture(name: &str) -> Vec<u8> {
    fs::read(Path::new(FIXTURES).join(name)).expect(name)
}

/// A small tokenizer of the same kind: its folder, vocabulary, and first and last token.
fn tokenizer(entry: &CatalogEntry) -> (&'static str, u64, [(u64, &'static str); 2]) {
    if entry.repository.starts_with("1bitLLM/") {
        ("golden/tokenizer-llama2", 3000, [(1, "<s>"), (2, "</s>")])
    } else {
        let tokens = [(4086, "<|begin_of_text|>"), (4087, "<|end_of_text|>")];
        ("golden/tokenizer-llama3", 4096, tokens)
    }
}

/// The class that `tokenizer_config.json` of a family names.
fn tokenizer_class(entry: &CatalogEntry) -> &'static str {
    match entry.family.as_str() {
        "trilm" => "GPTNeoXTokenizer",
        _ if entry.repository.starts_with("1bitLLM/") => "BitnetTokenizer",
        _ => "PreTrainedTokenizerFast",
    }
}

fn chat_template(entry: &CatalogEntry) -> Option<String> {
    if !entry.chat_template {
        return None;
    }
    let text = |name: &str| String::from_utf8(fixture(name)).expect("UTF-8");
    Some(match entry.family.as_str() {
        "llama3" => {
            let config = text("golden/tokenizer-llama3/tokenizer_config.json");
            let config: Value = serde_json::from_str(&config).expect("JSON");
            config["chat_template"].as_str().expect("a template").to_owned()
        }
        family => text(&format!("catalog/{family}.jinja")),
    })
}

/// A repository in Hugging Face's layout.
fn folder(entry: &CatalogEntry) -> Repository {
    let (tokenizer, vocab, [(bos, first), (eos, last)]) = tokenizer(entry);
    let mut config = configuration(entry);
    for (name, size) in [
        ("hidden_size", 256),
        ("intermediate_size", 256),
        ("num_hidden_layers", 1),
        ("num_attention_heads", 2),
        ("num_key_value_heads", 1),
        ("vocab_size", vocab),
        ("bos_token_id", bos),
        ("eos_token_id", eos),
    ] {
        config[name] = size.into();
    }
    let list = tensors(&config);
    let mut weights = safetensors_header(&list);
    for tensor in list {
        let bytes = usize::try_from(tensor.bytes()).expect("few bytes");
        weights.extend(tensor.pattern.iter().cycle().take(bytes));
    }
    let mut tokens = json!({
        "tokenizer_class": tokenizer_class(entry),
        "bos_token": first,
        "eos_token": last,
    });
    if let Some(template) = chat_template(entry) {
        tokens["chat_template"] = template.into();
    }
    vec![
        ("config.json".into(), config.to_string().into()),
        ("README.md".into(), b"A model.".to_vec()),
        ("tokenizer.json".into(), fixture(&format!("{tokenizer}/tokenizer.json"))),
        ("tokenizer_config.json".into(), tokens.to_string().into()),
        ("pytorch_model.bin".into(), b"no model".to_vec()),
        ("model.safetensors".into(), weights),
    ]
}

/// A repository with GGUF files of several types.
fn gguf(entry: &CatalogEntry) -> Repository {
    let file = entry.file.clone().expect("a file");
    let weights = if entry.family == "bonsai" {
        fixture("gguf/qwen3-q2_0.gguf")
    } else {
        let scratch = tempfile::tempdir().expect("a folder");
        let (from, to) = (scratch.path().join("hf"), scratch.path().join("m.gguf"));
        fs::create_dir(&from).expect("a folder");
        for (name, bytes) in folder(entry) {
            fs::write(from.join(name), bytes).expect("a file");
        }
        let [from, to] = [&from, &to].map(|path| path.to_str().expect("UTF-8"));
        let converted = setun(&["convert", "--to", "gguf-i2_s", from, to]);
        assert_eq!(converted.status, Some(0), "{}", converted.stderr);
        fs::read(to).expect("a file")
    };
    let others = ["model-F16.gguf", "model-PQ2_0.gguf", "model-Q2_0_g64.gguf"];
    let others = others.map(|name| (name.to_owned(), b"another".to_vec()));
    others.into_iter().chain([(file, weights)]).collect()
}

fn has_end(name: &str, end: &str) -> bool {
    Path::new(name).extension().is_some_and(|found| found == end)
}

/// Puts a repository on a server, as a hub has it.
fn put(server: &Server, model: &str, files: &Repository) {
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
        let files = if entry.format == "gguf" { gguf(entry) } else { folder(entry) };
        put(&server, &entry.repository, &files);
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

/// A chat, or a text, or logits of a file that has no tokenizer.
fn assert_runs(entry: &CatalogEntry, home: &tempfile::TempDir, server: &Server) {
    let name = entry.name.as_str();
    if entry.family == "bonsai" {
        let out = home.path().join("logits.safetensors");
        let args = ["logits", "--model", name, "--ids", "1,2", "--out"];
        let args = [&args[..], &[out.to_str().expect("UTF-8")]].concat();
        let ran = at(home, server, &args, b"");
        assert_eq!(ran.status, Some(0), "{name}: {}", ran.stderr);
        assert!(fs::metadata(out).expect("a file").len() > 0, "{name}");
        return;
    }
    let (command, input) = if entry.chat_template { ("chat", "Hello\n") } else { ("run", "Hello") };
    let ran = at(home, server, &[command, "--model", name, "--max-tokens", "2"], input.as_bytes());
    assert_eq!((ran.status, &*ran.stderr), (Some(0), ""), "{name}");
    assert!(!ran.stdout.is_empty(), "{name}");
}
