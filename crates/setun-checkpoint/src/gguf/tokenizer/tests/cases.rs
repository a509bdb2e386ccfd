//! llama.cpp's own cases: the ids of texts, without special tokens.

use std::path::{Path, PathBuf};

use setun_text::{HfTokenizer, Tokenizer as _};

use super::support::{ids, read, tokenizer, vocabulary, vocabulary_of};
use crate::gguf::tokenizer::{Vocabulary, Warning};

const FREE: [&str; 4] = ["gpt-2", "mpt", "falcon", "phi-3"];

const SEPARATOR: &str = "\n__ggml_vocab_test__\n";

/// Its added tokens are letters that also stand for bytes, which the byte-level decoder of
/// `tokenizers` takes them for.
const LATIN_LETTERS: &str = "ggml-vocab-deepseek-llm";

#[test]
fn texts_become_the_ids_of_the_reference() {
    for name in FREE {
        let converted = vocabulary(name).to_files().expect("it fits together");
        let count = check(name, &tokenizer(&converted), |end| read(&format!("vocab/{name}.{end}")));
        assert_eq!(count, 46, "{name}");
    }
}

/// Vocabularies that may not be given away, from a folder of llama.cpp's `models`.
#[test]
#[ignore = "needs SETUN_CONFORMANCE_VOCAB"]
fn whole_files_become_the_ids_of_the_reference() {
    let folder = std::env::var("SETUN_CONFORMANCE_VOCAB").expect("a folder");
    let folder = Path::new(&folder);
    let mut counts = vec![];
    for (file, cases) in [
        ("ggml-vocab-gpt-2", "gpt-2"),
        ("ggml-vocab-mpt", "mpt"),
        ("ggml-vocab-falcon", "falcon"),
        ("ggml-vocab-phi-3", "phi-3"),
        ("ggml-vocab-deepseek-llm", "deepseek-llm"),
        ("ggml-vocab-llama-spm", "llama-spm"),
        ("built-llama3-vocab", "llama-bpe"),
    ] {
        let (tokenizer, vocabulary) = whole(&folder.join(format!("{file}.gguf")));
        let path = |end: &str| folder.join(format!("ggml-vocab-{cases}.gguf.{end}"));
        let count = check(file, &tokenizer, |end| std::fs::read(path(end)).expect("cases"));
        counts.push((file, vocabulary.tokens.len(), count));
    }
    for (file, size) in [("ggml-vocab-baichuan", 64_000), ("ggml-vocab-gpt-neox", 50_432)] {
        let (_, vocabulary) = whole(&folder.join(format!("{file}.gguf")));
        assert_eq!(vocabulary.tokens.len(), size);
    }
    assert!(counts.iter().all(|(_, _, count)| *count == 46), "{counts:?}");
}

/// The first official file of `BitNet` names no pre-tokenizer, and ends turns by another token.
#[test]
#[ignore = "needs SETUN_CONFORMANCE_VOCAB"]
fn the_first_file_of_bitnet_is_read_as_llama_3() {
    let folder = PathBuf::from(std::env::var("SETUN_CONFORMANCE_VOCAB").expect("a folder"));
    let file = std::fs::read(folder.join("built-llama3-vocab.gguf")).expect("the file");
    let mut vocabulary = vocabulary_of(&file);
    vocabulary.pre = None;
    vocabulary.eos = Some(128_001);
    for architecture in ["bitnet", "bitnet-25", "bitnet-b1.58"] {
        architecture.clone_into(&mut vocabulary.architecture);
        let converted = vocabulary.to_files().expect("it fits together");
        assert_eq!(converted.end_tokens[..2], [128_001, 128_009]);
        assert_eq!(
            converted.warnings[..2],
            [
                Warning::PreTokenizerAbsent { assumed: "llama-bpe" },
                Warning::EndToken { token: "<|eot_id|>".to_owned(), id: 128_009 },
            ]
        );
        let path = |end: &str| folder.join(format!("ggml-vocab-llama-bpe.gguf.{end}"));
        let read = |end: &str| std::fs::read(path(end)).expect("cases");
        assert_eq!(check("bitnet", &tokenizer(&converted), read), 46);
    }
    "llama".clone_into(&mut vocabulary.architecture);
    let warnings = vocabulary.to_files().expect("it fits together").warnings;
    assert_eq!(warnings[0], Warning::PreTokenizerAbsent { assumed: "default" });
}

fn whole(path: &Path) -> (HfTokenizer, Vocabulary) {
    let file = std::fs::read(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let vocabulary = vocabulary_of(&file);
    let converted = vocabulary.to_files().expect("it fits together");
    (tokenizer(&converted), vocabulary)
}

/// Compares all cases; their number.
fn check(name: &str, tokenizer: &HfTokenizer, read: impl Fn(&str) -> Vec<u8>) -> usize {
    let texts = String::from_utf8(read("inp")).expect("UTF-8");
    let expected = String::from_utf8(read("out")).expect("UTF-8");
    let texts = texts.strip_suffix(SEPARATOR).expect("a last case");
    let texts: Vec<&str> = texts.split(SEPARATOR).collect();
    let lines: Vec<&str> = expected.lines().collect();
    assert_eq!(texts.len(), lines.len(), "{name}");
    for (text, line) in texts.iter().zip(&lines) {
        let line: Vec<u32> = line.split_whitespace().map(|id| id.parse().expect("ids")).collect();
        assert_eq!(ids(tokenizer, text), line, "{name}: {text:?}");
        if name == LATIN_LETTERS {
            continue;
        }
        let back = tokenizer.decode(&line, false).expect("any ids");
        assert_eq!(back, *text, "{name}");
    }
    lines.len()
}
