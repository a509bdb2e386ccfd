//! Lists that do not fit together are refused by name, and defaults are filled in.

use crate::{
    CheckpointError, files,
    gguf::tokenizer::{Vocabulary, Warning, known_pre_tokenizers, token_type},
};
use setun_text::Tokenizer as _;

use super::support::{ids, of, tokenizer};

/// Six tokens and two merges.
fn small() -> Vocabulary {
    Vocabulary {
        model: "gpt2".to_owned(),
        pre: Some("gpt-2".to_owned()),
        tokens: ["a", "b", "c", "ab", "abc", "<end>"].map(str::to_owned).to_vec(),
        token_types: vec![1, 1, 1, 1, 1, token_type::CONTROL],
        merges: vec!["a b".to_owned(), "ab c".to_owned()],
        eos: Some(5),
        ..Vocabulary::default()
    }
}

fn refused(change: impl FnOnce(&mut Vocabulary)) -> CheckpointError {
    let mut vocabulary = small();
    change(&mut vocabulary);
    vocabulary.to_files().expect_err("it does not fit together")
}

#[test]
fn what_fits_together_is_read() {
    let tokenizer = of(&small());
    assert_eq!(ids(&tokenizer, "abcab<end>c"), [4, 3, 5, 2]);
    assert_eq!(tokenizer.decode(&[4, 5, 3], true).expect("any ids"), "abcab");
    assert_eq!(tokenizer.vocab_size(), 6);
}

#[test]
fn merges_of_tokens_that_are_not_there() {
    for (merge, missing) in
        [("a x", "x"), ("x a", "x"), ("b a", "ba"), ("ab", ""), ("", ""), ("ab ", ""), (" ", "")]
    {
        let error = refused(|vocabulary| vocabulary.merges.push(merge.to_owned()));
        let (merge, missing) = (merge.to_owned(), missing.to_owned());
        assert_eq!(error, CheckpointError::Merge { index: 2, merge, missing });
    }
}

#[test]
fn merges_that_are_missing() {
    let error = refused(|vocabulary| vocabulary.merges.clear()).to_string();
    assert!(error.contains("`tokenizer.ggml.merges` is missing"), "{error}");
}

#[test]
fn merges_may_need_tokens_that_are_added() {
    let mut vocabulary = small();
    vocabulary.token_types = vec![1, 1, 1, 1, token_type::USER_DEFINED, token_type::CONTROL];
    assert_eq!(ids(&of(&vocabulary), "abcabbc"), [4, 3, 1, 2]);
    "llama".clone_into(&mut vocabulary.model);
    vocabulary.merges.clear();
    vocabulary.scores = vec![0.0, 0.0, 0.0, -1.0, -2.0, 0.0];
    vocabulary.add_space_prefix = Some(false);
    vocabulary.add_bos = Some(false);
    assert_eq!(ids(&of(&vocabulary), "abcabb"), [4, 3, 1]);
}

#[test]
fn merges_that_are_there_twice() {
    let mut vocabulary = small();
    vocabulary.merges.push("a b".to_owned());
    let converted = vocabulary.to_files().expect("the first counts");
    assert_eq!(converted.warnings, [Warning::RepeatedMerges { count: 1 }]);
    assert_eq!(ids(&tokenizer(&converted), "abc"), [4]);
}

#[test]
fn tokens_that_are_there_twice() {
    let error = refused(|vocabulary| vocabulary.tokens[4] = "b".to_owned());
    let token = "b".to_owned();
    assert_eq!(error, CheckpointError::DuplicateToken { token, first: 1, second: 4 });
}

#[test]
fn lists_of_other_lengths() {
    let field = "tokenizer.ggml.token_type";
    let error = refused(|vocabulary| vocabulary.token_types.truncate(5));
    assert_eq!(error, CheckpointError::VocabularyLength { field, expected: 6, found: 5 });
    let field = "tokenizer.ggml.scores";
    let error = refused(|vocabulary| vocabulary.scores = vec![0.0; 7]);
    assert_eq!(error, CheckpointError::VocabularyLength { field, expected: 6, found: 7 });
    let error = refused(|vocabulary| *vocabulary = Vocabulary { tokens: vec![], ..small() });
    assert!(matches!(error, CheckpointError::VocabularyLength { found: 0, .. }));
}

#[test]
fn ids_beyond_the_vocabulary() {
    type Set = fn(&mut Vocabulary) -> &mut Option<u32>;
    let fields: [(&str, Set); 4] = [
        ("tokenizer.ggml.bos_token_id", |vocabulary| &mut vocabulary.bos),
        ("tokenizer.ggml.eos_token_id", |vocabulary| &mut vocabulary.eos),
        ("tokenizer.ggml.unknown_token_id", |vocabulary| &mut vocabulary.unknown),
        ("tokenizer.ggml.eot_token_id", |vocabulary| &mut vocabulary.end_of_turn),
    ];
    for (field, set) in fields {
        let error = refused(|vocabulary| *set(vocabulary) = Some(6));
        assert_eq!(error, CheckpointError::TokenId { field, found: "6".to_owned(), tokens: 6 });
    }
    let vocabulary = Vocabulary { padding: Some(u32::MAX), ..small() };
    let warnings = vocabulary.to_files().expect("padding is not needed").warnings;
    assert_eq!(warnings, [Warning::PaddingToken { found: u32::MAX, tokens: 6 }]);
}

#[test]
fn a_beginning_that_is_requested_but_unknown() {
    let error = refused(|vocabulary| vocabulary.add_bos = Some(true));
    assert!(error.to_string().contains("tokenizer.ggml.bos_token_id is missing"), "{error}");
    let vocabulary = Vocabulary { pre: Some("llama-bpe".to_owned()), ..small() };
    assert_eq!(of(&vocabulary).encode("a", true).expect("any text"), [0]);
}

#[test]
fn kinds_that_are_not_known() {
    let error = refused(|vocabulary| vocabulary.pre = Some("martian".to_owned()));
    let text = error.to_string();
    assert!(known_pre_tokenizers().iter().all(|name| text.contains(name)), "{text}");
    assert!(text.contains("tokenizer.ggml.pre `martian`"), "{text}");
    let error = refused(|vocabulary| vocabulary.model = "t5".to_owned());
    assert!(error.to_string().contains("tokenizer.ggml.model `t5`"), "{error}");
}

#[test]
fn every_name_gives_patterns_that_compile() {
    for name in known_pre_tokenizers() {
        let vocabulary = Vocabulary { pre: Some(name.to_owned()), ..small() };
        let tokenizer = of(&vocabulary);
        assert_eq!(ids(&tokenizer, "abc"), [4], "{name}");
        assert_eq!(
            ids(&tokenizer, "ab\n漢字 1234 'S  abc!"),
            ids(&tokenizer, "ab\n  abc"),
            "{name}"
        );
    }
}

#[test]
fn special_tokens_begin_and_end_texts() {
    let vocabulary =
        Vocabulary { bos: Some(5), add_bos: Some(true), add_eos: Some(true), ..small() };
    let tokenizer = of(&vocabulary);
    assert_eq!(tokenizer.encode("ab", true).expect("any text"), [5, 3, 5]);
    assert_eq!(tokenizer.encode("ab", false).expect("any text"), [3]);
}

#[test]
fn every_end_of_a_turn_stops() {
    let mut vocabulary = small();
    vocabulary.tokens.extend(["<|im_end|>", "<|eot_id|>", "<turn>"].map(str::to_owned));
    vocabulary.token_types.extend([token_type::CONTROL, token_type::NORMAL, token_type::CONTROL]);
    vocabulary.end_of_turn = Some(8);
    let converted = vocabulary.to_files().expect("it fits together");
    assert_eq!(converted.end_tokens, [5, 8, 6]);
    let token = "<|im_end|>".to_owned();
    assert_eq!(converted.warnings, [Warning::EndToken { token, id: 6 }]);
}

#[test]
fn filling_and_nameless_tokens_are_no_text() {
    let mut vocabulary = small();
    vocabulary.tokens.extend(["<x>", "", "[PAD8]", "[PAD9]"].map(str::to_owned));
    vocabulary.token_types.extend([token_type::USER_DEFINED, 1, 5, 5]);
    let converted = vocabulary.to_files().expect("it fits together");
    let tokenizer = tokenizer(&converted);
    assert_eq!(ids(&tokenizer, "a<x>b"), [0, 6, 1]);
    assert_eq!(tokenizer.decode(&[6], true).expect("any ids"), "<x>");
    assert_eq!(tokenizer.token_to_id("[EMPTY_7]"), Some(7));
    assert_eq!((tokenizer.token_to_id("[PAD9]"), tokenizer.vocab_size()), (None, 8));
}

#[test]
fn the_configuration_names_tokens_and_template() {
    let chat_template = Some("{{ messages }}".to_owned());
    let vocabulary = Vocabulary { bos: Some(5), chat_template, ..small() };
    let converted = vocabulary.to_files().expect("it fits together");
    let config = converted.files.get(files::TOKENIZER_CONFIG).expect("a configuration");
    let config: serde_json::Value = serde_json::from_slice(config).expect("JSON");
    assert_eq!(config["bos_token"], "<end>");
    assert_eq!(config["eos_token"], "<end>");
    assert_eq!(config["chat_template"], "{{ messages }}");
    assert!(config.get("unk_token").is_none());
}

/// A vocabulary of `SentencePiece` may have the names of bytes and no types for them.
#[test]
fn bytes_are_known_by_their_names() {
    let bytes = |kind: Option<i32>| {
        let names = (0..=255).map(|byte| format!("<0x{byte:02X}>"));
        let tokens: Vec<_> = ["<unk>", "<s>", "</s>"]
            .map(str::to_owned)
            .into_iter()
            .chain(names)
            .chain(["a".to_owned()])
            .collect();
        let types = kind.map(|kind| {
            let mut types = vec![kind; tokens.len()];
            types[..3].copy_from_slice(&[
                token_type::UNKNOWN,
                token_type::CONTROL,
                token_type::CONTROL,
            ]);
            types
        });
        let scores = vec![0.0; tokens.len()];
        let token_types = types.unwrap_or_default();
        let model = "llama".to_owned();
        let vocabulary = Vocabulary {
            model,
            tokens,
            scores,
            token_types,
            add_space_prefix: Some(false),
            ..Vocabulary::default()
        };
        let tokenizer = of(&vocabulary);
        let ids = ids(&tokenizer, "a\né");
        (ids.clone(), tokenizer.decode(&ids, true).expect("any ids"))
    };
    let expected = (vec![259, 3 + 10, 3 + 0xc3, 3 + 0xa9], "a\né".to_owned());
    assert_eq!(bytes(Some(token_type::BYTE)), expected);
    assert_eq!(bytes(Some(token_type::NORMAL)), expected);
    assert_eq!(bytes(None), expected);
    let mut small = small();
    small.tokens[0] = "<0x0A>".to_owned();
    small.merges = vec!["b c".to_owned()];
    small.tokens[3] = "bc".to_owned();
    assert_eq!(ids(&of(&small), "b<end>"), [1, 5], "other vocabularies have no bytes");
}
