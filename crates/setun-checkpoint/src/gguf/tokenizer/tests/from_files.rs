//! From the files of a folder to a vocabulary and back: the same ids.

use std::path::Path;

use crate::{
    CheckpointError, files,
    gguf::tokenizer::{Vocabulary, Warning, token_type},
};
use serde_json::{Value, json as value};
use setun_text::{HfTokenizer, Tokenizer as _};

use super::support::{ids, json, of, read, texts, tokenizer, vocabulary, vocabulary_of};

const GOLDEN: [&str; 2] = ["tokenizer-llama3", "tokenizer-llama2"];

/// Compares a vocabulary with what transformers makes of texts.
fn agrees_with_golden(folder: &str, vocabulary: &Vocabulary) {
    let tokenizer = of(vocabulary);
    let as_text = of(vocabulary).with_specials_as_text();
    let golden = json(&format!("golden/{folder}/golden.json"));
    let list = |value: &Value| -> Vec<u32> {
        serde_json::from_value(value.clone()).expect("a list of ids")
    };
    assert_eq!(golden["vocab_size"], tokenizer.vocab_size());
    for case in golden["encode"].as_array().expect("cases") {
        let text = case["text"].as_str().expect("a text");
        let with_bos = tokenizer.encode(text, true).expect("any text");
        assert_eq!(ids(&tokenizer, text), list(&case["ids"]), "{folder}: {text:?}");
        assert_eq!(with_bos, list(&case["ids_with_bos"]), "{folder}: {text:?}");
        assert_eq!(ids(&as_text, text), list(&case["ids_specials_as_text"]), "{folder}: {text:?}");
    }
    let cases = ["encode", "decode_random"].map(|name| golden[name].as_array().expect("cases"));
    for case in cases.into_iter().flatten() {
        let decode = |skip| tokenizer.decode(&list(&case["ids"]), skip).expect("any ids");
        assert_eq!(case["decoded"], decode(false));
        assert_eq!(case["decoded_skip_special"], decode(true));
    }
}

fn golden_files(folder: &str) -> [Vec<u8>; 2] {
    [files::TOKENIZER, files::TOKENIZER_CONFIG].map(|file| read(&format!("golden/{folder}/{file}")))
}

#[test]
fn files_of_another_writer_give_the_ids_of_the_reference() {
    for folder in GOLDEN {
        let vocabulary = vocabulary_of(&read(&format!("vocab/{folder}.gguf")));
        agrees_with_golden(folder, &vocabulary);
        let [original, config] = golden_files(folder);
        let converted = vocabulary.to_files().expect("it fits together");
        let parse = |bytes: &[u8]| -> Value { serde_json::from_slice(bytes).expect("JSON") };
        let found = parse(converted.files.get(files::TOKENIZER).expect("a tokenizer"));
        let original = parse(&original);
        for part in ["added_tokens", "normalizer", "model"] {
            assert_eq!(found[part], original[part], "{folder}: {part}");
        }
        let found = parse(converted.files.get(files::TOKENIZER_CONFIG).expect("a file"));
        let config = parse(&config);
        for part in ["bos_token", "eos_token", "chat_template"] {
            assert_eq!(found[part], config[part], "{folder}: {part}");
        }
    }
}

#[test]
fn from_files_and_back_gives_the_ids_of_the_reference() {
    for folder in GOLDEN {
        let [tokenizer, config] = golden_files(folder);
        let size = HfTokenizer::from_bytes(&tokenizer).expect("it is valid").vocab_size();
        let (vocabulary, _) =
            Vocabulary::from_files(&tokenizer, Some(&config), size).expect("it can be said");
        agrees_with_golden(folder, &vocabulary);
        let written = vocabulary_of(&read(&format!("vocab/{folder}.gguf")));
        assert_eq!((vocabulary.tokens, vocabulary.pre), (written.tokens, written.pre));
        assert_eq!(vocabulary.token_types, written.token_types);
        assert_eq!(vocabulary.chat_template, written.chat_template);
        assert_eq!((vocabulary.bos, vocabulary.eos), (written.bos, written.eos));
    }
}

/// Marks are joined to letters, texts are brought into the form NFC, and digits stand alone.
#[test]
fn qwen35_splits_text_as_the_reference() {
    let folder = "families/qwen35";
    let file = read(&format!("{folder}/{}", files::TOKENIZER));
    let size = HfTokenizer::from_bytes(&file).expect("it is valid").vocab_size();
    let (vocabulary, warnings) = Vocabulary::from_files(&file, None, size).expect("it can be said");
    assert_eq!((vocabulary.pre.as_deref(), warnings.as_slice()), (Some("qwen35"), &[][..]));
    let tokenizer = of(&vocabulary);
    for case in json(&format!("{folder}/tokens.json"))["cases"].as_array().expect("cases") {
        let text = case["text"].as_str().expect("a text");
        assert_eq!(Value::from(ids(&tokenizer, text)), case["ids"], "{text:?}");
    }
}

#[test]
fn conversions_there_and_back_change_nothing() {
    for (name, size) in [("gpt-2", 50_257), ("mpt", 50_432), ("falcon", 65_024), ("phi-3", 32_064)]
    {
        let first = vocabulary(name);
        let converted = first.to_files().expect("it fits together");
        let file = |name| converted.files.get(name).expect("a file");
        let (second, warnings) = Vocabulary::from_files(
            file(files::TOKENIZER),
            Some(file(files::TOKENIZER_CONFIG)),
            size,
        )
        .expect("it can be said");
        assert_eq!(warnings, [], "{name}");
        assert_eq!(second.tokens, first.tokens, "{name}");
        assert_eq!(second.merges, first.merges, "{name}");
        assert_eq!(second.pre, first.pre, "{name}");
        assert_eq!((second.bos, second.eos), (first.bos, first.eos), "{name}");
        let (before, behind) = (tokenizer(&converted), of(&second));
        for text in texts() {
            let encode = |tokenizer: &HfTokenizer| tokenizer.encode(&text, true).expect("any text");
            assert_eq!(encode(&behind), encode(&before), "{name}: {text:?}");
        }
    }
}

/// Published tokenizers that may not be given away: folders with `tokenizer.json`, and beside
/// one a `.gguf` of the same name that another program wrote.
#[test]
#[ignore = "needs SETUN_TOKENIZERS"]
fn published_tokenizers_keep_their_ids() {
    let folder = std::env::var("SETUN_TOKENIZERS").expect("a folder");
    let mut count = 0;
    for entry in std::fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        let Ok(original) = std::fs::read(path.join(files::TOKENIZER)) else { continue };
        let config = std::fs::read(path.join(files::TOKENIZER_CONFIG)).ok();
        let expected = HfTokenizer::from_bytes(&original).expect("it is valid");
        let size = expected.vocab_size() + 10;
        let (vocabulary, warnings) =
            Vocabulary::from_files(&original, config.as_deref(), size).expect("it can be said");
        assert_eq!(warnings, [], "{}", path.display());
        let mut all = vec![vocabulary];
        all.extend(
            std::fs::read(path.with_extension("gguf")).ok().map(|file| vocabulary_of(&file)),
        );
        for vocabulary in all {
            keeps_ids(&path, &expected, &vocabulary);
            count += 1;
        }
    }
    assert!(count >= 3, "{count}");
}

fn keeps_ids(path: &Path, expected: &HfTokenizer, vocabulary: &Vocabulary) {
    let found = of(vocabulary);
    assert_eq!(found.vocab_size(), expected.vocab_size());
    for text in texts() {
        for special in [false, true] {
            let encode = |tokenizer: &HfTokenizer| tokenizer.encode(&text, special).expect("any");
            let ids = encode(expected);
            assert_eq!(encode(&found), ids, "{}: {text:?}", path.display());
            let decode = |tokenizer: &HfTokenizer| tokenizer.decode(&ids, special).expect("any");
            assert_eq!(decode(&found), decode(expected), "{}: {text:?}", path.display());
        }
    }
}

fn changed(folder: &str, change: impl FnOnce(&mut Value)) -> Result<Vec<Warning>, CheckpointError> {
    let [tokenizer, config] = golden_files(folder);
    let mut file: Value = serde_json::from_slice(&tokenizer).expect("JSON");
    change(&mut file);
    let bytes = serde_json::to_vec(&file).expect("JSON");
    Vocabulary::from_files(&bytes, Some(&config), 5000).map(|(_, warnings)| warnings)
}

#[test]
fn what_cannot_be_said_is_refused_by_name() {
    type Case = (&'static str, &'static str, fn(&mut Value));
    let [llama_3, llama_2] = GOLDEN;
    let cases: [Case; 7] = [
        (llama_3, "model `Unigram`", |file| file["model"]["type"] = "Unigram".into()),
        (llama_3, "affix of subwords `##`", |file| {
            file["model"]["continuing_subword_prefix"] = "##".into();
        }),
        (llama_3, "way to split text", |file| {
            file["pre_tokenizer"]["pretokenizers"][0]["pattern"]["Regex"] = "x+".into();
        }),
        (llama_3, "pre_tokenizer", |file| file["pre_tokenizer"] = value!({"type": "Whitespace"})),
        (llama_3, "post_processor", |file| file["post_processor"] = value!({"type": "Bert"})),
        (llama_2, "normalizer", |file| file["normalizer"] = value!({"type": "Lowercase"})),
        (llama_2, "an id of tokenizer.json is 5000", |file| {
            file["model"]["vocab"]["zzz"] = 5000.into();
        }),
    ];
    for (folder, expected, change) in cases {
        let error = changed(folder, change).expect_err("it cannot be said").to_string();
        assert!(error.contains(expected), "{expected}: {error}");
    }
}

#[test]
fn what_is_lost_is_reported() {
    let [llama_3, llama_2] = GOLDEN;
    let warnings = changed(llama_3, |file| file["normalizer"] = value!({"type": "NFC"}));
    assert!(matches!(warnings.as_deref(), Ok([Warning::Normalizer { .. }])), "{warnings:?}");
    let warnings = changed(llama_3, |file| file["added_tokens"][1]["rstrip"] = true.into());
    assert!(matches!(warnings.as_deref(), Ok([Warning::AddedToken { .. }])), "{warnings:?}");
    let warnings = changed(llama_2, |file| {
        file["normalizer"] = Value::Null;
        file["pre_tokenizer"] =
            value!({"type": "Metaspace", "prepend_scheme": "first", "split": false});
    })
    .expect("it can be said");
    assert!(warnings.contains(&Warning::SpacePrefix));
    assert!(warnings.contains(&Warning::MergesBesideScores));
}

#[test]
fn ids_without_a_token_are_filled() {
    let [tokenizer, config] = golden_files("tokenizer-llama3");
    let (vocabulary, _) =
        Vocabulary::from_files(&tokenizer, Some(&config), 4100).expect("it can be said");
    assert_eq!(vocabulary.tokens[4096..], ["[PAD4096]", "[PAD4097]", "[PAD4098]", "[PAD4099]"]);
    assert_eq!(vocabulary.token_types[4095..], [token_type::CONTROL, 5, 5, 5, 5]);
    assert_eq!(of(&vocabulary).vocab_size(), 4096);
    assert_eq!(vocabulary.end_of_turn, Some(4095));
}
