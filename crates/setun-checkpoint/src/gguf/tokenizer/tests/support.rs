//! Shared helpers: fixtures, and vocabularies in the short form of `make.py`.

use std::path::PathBuf;

use serde_json::Value;
use setun_text::{HfTokenizer, Tokenizer as _};

use crate::{
    files,
    gguf::{
        header,
        tokenizer::{Converted, Vocabulary},
        vocabulary,
    },
};

/// A file below the test data of the workspace.
pub(super) fn read(path: &str) -> Vec<u8> {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../tests/fixtures");
    let path = folder.join(path);
    std::fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// A JSON file of it.
pub(super) fn json(path: &str) -> Value {
    serde_json::from_slice(&read(path)).expect("fixtures are valid JSON")
}

/// The tokenizer of a conversion.
pub(super) fn tokenizer(converted: &Converted) -> HfTokenizer {
    let file = converted.files.get(files::TOKENIZER).expect("a tokenizer");
    HfTokenizer::from_bytes(file).expect("the form of tokenizer.json")
}

/// The tokenizer of a vocabulary.
pub(super) fn of(vocabulary: &Vocabulary) -> HfTokenizer {
    tokenizer(&vocabulary.to_files().expect("a vocabulary that fits together"))
}

/// Ids of a text as plain text.
pub(super) fn ids(tokenizer: &HfTokenizer, text: &str) -> Vec<u32> {
    tokenizer.encode(text, false).expect("any text")
}

/// The vocabulary of a GGUF file.
pub(super) fn vocabulary_of(file: &[u8]) -> Vocabulary {
    let mut metadata = header::parse("a file", file).expect("a header").metadata;
    vocabulary::take(&mut metadata).expect("a vocabulary")
}

/// A vocabulary from `fixtures/vocab`.
pub(super) fn vocabulary(name: &str) -> Vocabulary {
    let file = json(&format!("vocab/{name}.json"));
    let strings = |value: &Value| -> Vec<String> {
        serde_json::from_value(value.clone()).expect("a list of texts")
    };
    let id = |key: &str| serde_json::from_value(file[key].clone()).expect("an id or null");
    let flag = |key: &str| file[key].as_bool();
    let text = |key: &str| file[key].as_str().map(str::to_owned);
    let merges = strings(&file["merges"]);
    Vocabulary {
        architecture: text("architecture").expect("a name"),
        model: text("model").expect("a name"),
        pre: text("pre"),
        tokens: tokens(&file["tokens"], &merges),
        scores: runs(&file["scores"]),
        #[expect(clippy::cast_possible_truncation, reason = "small whole numbers")]
        token_types: runs(&file["token_types"]).iter().map(|kind| *kind as i32).collect(),
        merges,
        bos: id("bos"),
        eos: id("eos"),
        unknown: id("unknown"),
        padding: id("padding"),
        end_of_turn: None,
        add_bos: flag("add_bos"),
        add_eos: flag("add_eos"),
        add_space_prefix: flag("add_space_prefix"),
        remove_extra_whitespaces: None,
        chat_template: text("chat_template"),
    }
}

/// Tokens as texts, or as how many merges make the next ones.
fn tokens(list: &Value, merges: &[String]) -> Vec<String> {
    let mut made = merges.iter().map(|merge| merge.replacen(' ', "", 1));
    let entries = list.as_array().expect("a list").iter();
    let entry = |entry: &Value| -> Vec<String> {
        match entry.as_u64() {
            Some(count) => made.by_ref().take(usize::try_from(count).expect("a count")).collect(),
            None => vec![entry.as_str().expect("a text").to_owned()],
        }
    };
    entries.flat_map(entry).collect()
}

/// Runs of a count, a first value and a step.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "small numbers")]
fn runs(list: &Value) -> Vec<f32> {
    let runs = list.as_array().expect("a list").iter();
    let run = |run: &Value| {
        let [count, first, step] = [0, 1, 2].map(|at| run[at].as_f64().expect("a number"));
        (0..count as u32).map(move |at| (first + f64::from(at) * step) as f32).collect::<Vec<_>>()
    };
    runs.flat_map(run).collect()
}

/// Texts of all kinds: those of the golden files, llama.cpp's cases, and runs of equal letters.
pub(super) fn texts() -> Vec<String> {
    let mut texts = vec![];
    for folder in ["tokenizer-llama3", "tokenizer-llama2"] {
        let golden = json(&format!("golden/{folder}/golden.json"));
        let cases = golden["encode"].as_array().expect("cases");
        texts.extend(cases.iter().map(|case| case["text"].as_str().expect("a text").to_owned()));
    }
    let cases = String::from_utf8(read("vocab/gpt-2.inp")).expect("UTF-8");
    texts.extend(cases.split("\n__ggml_vocab_test__\n").map(str::to_owned));
    for unit in [" ", "a", "ab", "=", "\n", "ана", "哈", " the", "0", "\t "] {
        texts.extend((1..40).map(|count| format!("x{}y", unit.repeat(count))));
    }
    assert!(texts.len() > 400);
    texts
}
