//! The same models from ONNX files: their logits have the same bits.

use std::{collections::BTreeMap, path::Path};

use setun::{DeviceOptions, Model, Source};
use setun_checkpoint::{Answer, Reader, tensor_list, tensor_list_writer};
use setun_tests::{fixture, run::Runner};

/// Files of a folder, those of an export over those of its checkpoint.
fn files(golden: &str, export: &str) -> BTreeMap<String, Vec<u8>> {
    let mut files = BTreeMap::new();
    add(&mut files, &fixture(&format!("golden/{golden}")), "");
    add(&mut files, &fixture(&format!("onnx/{export}")), "");
    files
}

fn add(files: &mut BTreeMap<String, Vec<u8>>, folder: &Path, prefix: &str) {
    for entry in folder.read_dir().expect("a fixture") {
        let path = entry.expect("a fixture").path();
        let name = path.file_name().expect("a name").to_str().expect("plain names");
        if path.is_dir() {
            add(files, &path, &format!("{prefix}{name}/"));
        } else {
            files.insert(format!("{prefix}{name}"), std::fs::read(&path).expect("a fixture"));
        }
    }
}

fn open(files: &BTreeMap<String, Vec<u8>>, source: Source) -> Model {
    let files = files.iter().map(|(name, bytes)| (name.as_str(), bytes.as_slice())).collect();
    Model::from_files(source, "onnx", &files).expect("a model")
}

#[test]
fn logits_have_the_same_bits() {
    let tokens: Vec<u32> = (0..40).map(|token| token * 37 % 250).collect();
    for (golden, export, file) in [
        ("bitnet-h64/packed", "genai", "model.onnx"),
        ("bitnet-h64/packed", "fused", "onnx/model_q2.onnx"),
        ("bitnet-h64/packed", "mixed", "model.onnx"),
        ("llama-rmsnorm-bias/packed", "bias", "model.onnx"),
        ("bitnet-h64/master", "master", "model.onnx"),
    ] {
        let files = files(golden, export);
        let expected = open(&files, Source::Folder);
        let found = open(&files, Source::File(file.to_owned()));
        assert_eq!(found.weights().kinds(), expected.weights().kinds(), "{export}");
        let logits = |model| -> Vec<_> {
            let rows = Runner::new(model, DeviceOptions::default()).logits(&tokens, 8);
            rows.into_iter().flatten().map(f32::to_bits).collect()
        };
        assert_eq!(logits(found), logits(expected), "{export}");
    }
}

/// A model whose embedding and head are integers; the head is the embedding, or has its own.
fn of_tables(name: &str, tied: bool) -> Model {
    let mut files = files("bitnet-h64/master", "tables");
    let config = String::from_utf8(files["config.json"].clone()).expect("a text");
    let from = "\"tie_word_embeddings\": true";
    assert!(config.contains(from));
    let config = config.replace(from, &format!("\"tie_word_embeddings\": {tied}"));
    files.insert("config.json".to_owned(), config.into_bytes());
    open(&files, Source::File(format!("{name}.onnx")))
}

#[test]
fn tables_of_integers_are_computed_with() {
    let tokens: Vec<u32> = (0..20).map(|token| token * 37 % 250).collect();
    let logits = |name: &str, tied| -> Vec<_> {
        let mut runner = Runner::new(of_tables(name, tied), DeviceOptions::default());
        runner.logits(&tokens, 8).into_iter().flatten().map(f32::to_bits).collect()
    };
    // A head of its own that has the numbers of the embedding.
    assert_eq!(logits("shared", false), logits("shared", true));
    for name in ["two", "two-by-32", "four", "eight", "int4", "uint4"] {
        let (own, tied) = (logits(name, false), logits(name, true));
        assert!(own.iter().chain(&tied).all(|&bits| f32::from_bits(bits).is_finite()), "{name}");
        assert_ne!(own, tied, "{name}");
    }
}

/// The files that the engine reads of the list that a module in WebAssembly has of an ONNX file.
fn listed(files: &BTreeMap<String, Vec<u8>>, file: &str) -> BTreeMap<String, Vec<u8>> {
    let (mut reader, mut list) = (Reader::of_onnx(file), None);
    let mut listed = files.clone();
    while let Some(want) = reader.next_read() {
        let bytes = files.get(&want.file).map(|bytes| match want.range {
            None => bytes.as_slice(),
            Some(range) => {
                let at = |place: u64| usize::try_from(place).expect("small").min(bytes.len());
                &bytes[at(range.start)..at(range.end)]
            }
        });
        reader.give(bytes.map_or(Answer::Missing, Answer::Bytes)).expect("a sound file");
        if list.is_none() {
            list = tensor_list_writer::list(&mut reader).expect("a list");
        }
        if let Some(tensor) = reader.take() {
            let name = format!("{}{}", tensor_list::PREFIX, tensor.info.name);
            listed.insert(name, tensor_list_writer::bytes(&tensor));
        }
    }
    let config = tensor_list_writer::file(&reader, "config.json").expect("JSON").expect("a file");
    listed.insert("config.json".to_owned(), config);
    listed.insert("the list".to_owned(), list.expect("a list"));
    listed
}

#[test]
fn the_list_of_a_module_gives_the_same_weights() {
    for (golden, export, file) in [
        ("bitnet-h64/packed", "fused", "onnx/model_q2.onnx"),
        ("llama-rmsnorm-bias/packed", "bias", "model.onnx"),
        ("bitnet-h64/master", "master", "model.onnx"),
        ("bitnet-h64/master", "tables", "two.onnx"),
        ("bitnet-h64/master", "tables", "int4.onnx"),
    ] {
        let files = files(golden, export);
        let expected = open(&files, Source::File(file.to_owned()));
        let found = open(&listed(&files, file), Source::Tensors("the list".to_owned()));
        let weights = |model: &Model| format!("{:?}", model.weights());
        assert!(weights(&expected).len() > 10_000, "all numbers of {export}");
        assert_eq!(weights(&found), weights(&expected), "{export}");
    }
}
