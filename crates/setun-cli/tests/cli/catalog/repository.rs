//! Small repositories of the mirror.
//!
//! `setun synth --like` makes them, from each model's real configuration, a small tokenizer of the
//! same class, and a template of the same format. Layers are few and narrow, the vocabulary is that
//! of the tokenizer.
//!
//! The files of Ternary Bonsai are put together here: they are GGUF files whose tables are of type
//! `PQ2_0` as well, while `synth --like` makes floats of those. Configuration, class of the tokenizer and template are the real ones here, too.

use std::{collections::BTreeSet, fs, path::Path};

use safetensors::SafeTensors;
use serde_json::{Value, json};
use setun::hub::CatalogEntry;

use super::{configuration, gguf, hybrid::BLOCK, tensors::tensors, vocabulary};
use crate::support::setun;

const FIXTURES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/fixtures");

/// Files of a repository.
pub(super) type Repository = Vec<(String, Vec<u8>)>;

/// A small tokenizer.
struct Tokenizer {
    folder: &'static str,
    vocab: u64,
    /// Ids and texts of the tokens that begin and end a text.
    bos: (u64, &'static str),
    eos: (u64, &'static str),
}

const LLAMA_2: Tokenizer =
    Tokenizer { folder: "golden/tokenizer-llama2", vocab: 3000, bos: (1, "<s>"), eos: (2, "</s>") };

const LLAMA_3: Tokenizer = Tokenizer {
    folder: "golden/tokenizer-llama3",
    vocab: 4096,
    bos: (4086, "<|begin_of_text|>"),
    eos: (4087, "<|end_of_text|>"),
};

fn fixture(name: &str) -> Vec<u8> {
    fs::read(Path::new(FIXTURES).join(name)).expect(name)
}

fn text(name: &str) -> String {
    String::from_utf8(fixture(name)).expect("UTF-8")
}

/// A tokenizer of the same kind as an entry's.
fn tokenizer(entry: &CatalogEntry) -> Tokenizer {
    if entry.repository.starts_with("1bitLLM/") { LLAMA_2 } else { LLAMA_3 }
}

/// The class that `tokenizer_config.json` of a family names.
fn tokenizer_class(entry: &CatalogEntry) -> &'static str {
    match entry.family.as_str() {
        "trilm" => "GPTNeoXTokenizer",
        _ if entry.repository.starts_with("1bitLLM/") => "BitnetTokenizer",
        _ => "PreTrainedTokenizerFast",
    }
}

/// A template of the entry's format.
fn chat_template(entry: &CatalogEntry) -> Option<String> {
    Some(match entry.chat_template.as_deref()? {
        "llama3" => {
            let config = text("golden/tokenizer-llama3/tokenizer_config.json");
            let config: Value = serde_json::from_str(&config).expect("JSON");
            config["chat_template"].as_str().expect("a template").to_owned()
        }
        "chatml" => text("chat-templates/Qwen-Qwen3-0.6B.jinja"),
        "qwen3.5" => text("chat-templates/Qwen3.5-4B.jinja"),
        format => text(&format!("catalog/{format}.jinja")),
    })
}

/// Sizes of the mirror's models.
fn small(vocab: u64) -> [(&'static str, Value); 6] {
    [
        ("hidden_size", 256.into()),
        ("intermediate_size", 256.into()),
        ("num_hidden_layers", 1.into()),
        ("num_attention_heads", 2.into()),
        ("num_key_value_heads", 1.into()),
        ("vocab_size", vocab.into()),
    ]
}

/// The same of a hybrid model: delta nets, and one layer that attends.
fn small_hybrid(config: &Value) -> Vec<(&'static str, Value)> {
    if !config["linear_num_key_heads"].is_u64() {
        return vec![];
    }
    let mut changes = vec![
        ("num_hidden_layers", config["full_attention_interval"].clone()),
        ("linear_num_key_heads", 2.into()),
        ("linear_num_value_heads", 6.into()),
    ];
    if config[BLOCK].is_u64() {
        changes.push((BLOCK, 128.into()));
    }
    changes
}

/// `tokenizer_config.json` of an entry.
pub(super) fn tokenizer_config(entry: &CatalogEntry) -> Value {
    let Tokenizer { bos, eos, .. } = tokenizer(entry);
    let mut config = json!({
        "tokenizer_class": tokenizer_class(entry),
        "bos_token": bos.1,
        "eos_token": eos.1,
    });
    if let Some(template) = chat_template(entry) {
        config["chat_template"] = template.into();
    }
    config
}

/// Writes what `synth` takes of a model; the fields of its configuration to change.
fn write_original(entry: &CatalogEntry, folder: &Path) -> Vec<String> {
    let Tokenizer { folder: tokenizer, vocab, bos, eos } = tokenizer(entry);
    fs::create_dir(folder).expect("a folder");
    let write = |name, bytes: Vec<u8>| fs::write(folder.join(name), bytes).expect(name);
    write("config.json", configuration(entry).to_string().into());
    write("tokenizer.json", fixture(&format!("{tokenizer}/tokenizer.json")));
    write("tokenizer_config.json", tokenizer_config(entry).to_string().into());
    if let Some(sampling) = entry.sampling {
        let mut generation = serde_json::to_value(sampling).expect("JSON");
        generation["do_sample"] = true.into();
        write("generation_config.json", generation.to_string().into());
    }
    let mut changes = small(vocab).to_vec();
    changes.extend([("bos_token_id", bos.0.into()), ("eos_token_id", eos.0.into())]);
    if entry.repository.starts_with("1bitLLM/") {
        changes.push(("torch_dtype", "float32".into())); // of the files, whatever is stated
    }
    changes.iter().map(|(field, value)| format!("{field}={value}")).collect()
}

/// A stand-in that `synth` writes.
fn synth(entry: &CatalogEntry, to: &str, out: &Path) {
    let scratch = tempfile::tempdir().expect("a folder");
    let original = scratch.path().join("original");
    let changes = write_original(entry, &original);
    let [like, out] = [&original, out].map(|path: &Path| path.to_str().expect("UTF-8"));
    let mut args = vec!["synth", "--like", like, "--to", to, out];
    args.extend(changes.iter().flat_map(|change| ["--set", change]));
    let made = setun(&args);
    assert_eq!((made.status, &*made.stderr), (Some(0), ""), "{}", entry.name);
}

/// A repository in Hugging Face's layout.
fn folder(entry: &CatalogEntry) -> Repository {
    let scratch = tempfile::tempdir().expect("a folder");
    let made = scratch.path().join("made");
    synth(entry, "hf", &made);
    let file = |name: &str| (name.to_owned(), fs::read(made.join(name)).expect(name));
    let mut files = vec![file("config.json"), ("README.md".into(), b"A model.".to_vec())];
    if entry.sampling.is_some() {
        files.push(file("generation_config.json"));
    }
    files.extend([file("tokenizer.json"), file("tokenizer_config.json")]);
    files.push(("pytorch_model.bin".into(), b"no model".to_vec()));
    files.push(file("model.safetensors"));
    check_tensors(entry, &files);
    files
}

/// The tensors that `synth` writes are those that a model of its configuration has.
fn check_tensors(entry: &CatalogEntry, files: &Repository) {
    let find = |wanted: &str| &files.iter().find(|(name, _)| name == wanted).expect(wanted).1;
    let config: Value = serde_json::from_slice(find("config.json")).expect("JSON");
    let expected = tensors(&config).into_iter().map(|tensor| {
        let shape = tensor.shape.iter().map(|&size| usize::try_from(size).expect("a size"));
        (tensor.name, tensor.dtype.to_owned(), shape.collect::<Vec<_>>())
    });
    let found = SafeTensors::deserialize(find("model.safetensors")).expect("a file");
    let found = found.tensors().into_iter();
    let found: BTreeSet<_> =
        found.map(|(name, view)| (name, view.dtype().to_string(), view.shape().to_vec())).collect();
    assert_eq!(found, expected.collect(), "{}", entry.name);
}

/// A GGUF file with an entry's tokenizer and template.
fn weights(entry: &CatalogEntry) -> Vec<u8> {
    if entry.family != "bonsai" {
        let scratch = tempfile::tempdir().expect("a folder");
        let made = scratch.path().join("m.gguf");
        synth(entry, "gguf-i2_s", &made);
        return fs::read(made).expect("a file");
    }
    let mut config = configuration(entry);
    let tokenizer = text(&format!("{}/tokenizer.json", LLAMA_3.folder));
    let is_hybrid = config["linear_num_key_heads"].is_u64();
    let hybrid = small_hybrid(&config);
    for (field, value) in small(LLAMA_3.vocab).into_iter().chain(hybrid) {
        config[field] = value;
    }
    let template = chat_template(entry).expect("a template");
    let pre = if is_hybrid { "qwen35" } else { "qwen2" };
    let fields = vocabulary::fields(&tokenizer, &template, pre);
    let (mut bytes, parts) = gguf::file(&config, &tensors(&config), fields);
    for part in parts {
        let at = |offset: u64| usize::try_from(offset).expect("few bytes");
        bytes.resize(at(part.range.start), 0);
        let count = at(part.range.end - part.range.start);
        bytes.extend(part.pattern.iter().cycle().take(count));
    }
    bytes
}

/// The repository of an entry; one of GGUF files has others, too.
pub(super) fn repository(entry: &CatalogEntry) -> Repository {
    if entry.format != "gguf" {
        return folder(entry);
    }
    let file = entry.file.clone().expect("a file");
    let others = ["model-F16.gguf", "model-Q2_0.gguf", "model-Q2_0_g64.gguf"];
    let others = others.map(|name| (name.to_owned(), b"another".to_vec()));
    others.into_iter().chain([(file, weights(entry))]).collect()
}
