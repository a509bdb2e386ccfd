//! Bounds on texts, and ids as the crate gives them.

use serde_json::{Value, json};

use super::{HfTokenizer, open, opened, seeds, with};
use crate::{TextError, Tokenizer as _};

const TEXTS: [&str; 12] = [
    "",
    " ",
    "a",
    "ab abab  ab.\n\n",
    "Ab\tÀB 日本語 😀 e\u{301}\u{323} ﷺ İ",
    "<s>ab<end>[CLS] </s>x<unk>",
    "12345 don't 'LL   \u{3000}\u{a0}",
    "\u{0}\u{1}\u{7f}\u{ad}\u{fffd}\u{feff}",
    "ああ　カタカナ한글 mixed सभी",
    "A A  A   A",
    "##b ##a|a",
    "\u{344}\u{323}\u{f73}\u{1100}\u{1161}\u{11a8}",
];

#[test]
fn ids_and_texts_are_those_of_the_crate() {
    for (name, seed) in seeds::all() {
        let tokenizer = opened(&seed);
        for text in TEXTS {
            for add_special in [false, true] {
                let expected = tokenizer.inner.encode_fast(text, add_special).expect("any text");
                let ids = tokenizer.encode(text, add_special).expect("any text");
                assert_eq!(ids, expected.get_ids(), "{name}: {text:?}");
                for skip_special in [false, true] {
                    let expected = tokenizer.inner.decode(&ids, skip_special).expect("any ids");
                    let text = tokenizer.decode(&ids, skip_special).expect("any ids");
                    assert_eq!(text, expected, "{name}: {ids:?}");
                }
            }
        }
    }
}

#[test]
fn a_text_has_at_least_its_length_over_the_longest_token() {
    for (name, seed) in seeds::all() {
        let tokenizer = opened(&seed);
        let mut bounded = 0;
        for text in TEXTS.into_iter().chain([&*"ab ".repeat(500), &*" ".repeat(300)]) {
            let (least, ids) = (tokenizer.min_tokens(text), tokenizer.encode(text, false));
            assert!(least <= ids.expect("any text").len(), "{name}: {least} of {text:?}");
            bounded += least;
        }
        let keeps_all = matches!(name, "sentence_piece" | "byte_level");
        assert_eq!(bounded > 0, keeps_all, "{name}: {bounded}");
    }
    // The longest is `<0x00>`, which stands for one byte but is spelt with six.
    assert_eq!(opened(&seeds::sentence_piece()).min_tokens(&"a".repeat(600)), 100);
    // Five bytes of `<end>`, each of which may be composed of nine.
    assert_eq!(opened(&seeds::byte_level()).min_tokens(&"a".repeat(4500)), 100);
}

/// Each of these loses text, so its length says nothing, or only that of what is no space.
#[test]
fn a_tokenizer_that_loses_text_has_no_bound() {
    let long = "a  ".repeat(1000);
    let least = |file: Value| opened(&file).min_tokens(&long);
    let seed = seeds::sentence_piece;
    let normalizers = "/normalizer/normalizers";
    assert_eq!(least(seed()), 500);
    let strip = json!([{"type": "Strip", "strip_left": true, "strip_right": true}]);
    assert_eq!(least(with(seed(), normalizers, strip)), 167);
    assert_eq!(least(with(seed(), "/added_tokens/0/rstrip", true)), 167);
    for lossy in [
        json!([{"type": "Replace", "pattern": {"Regex": "a"}, "content": "b"}]),
        json!([{"type": "Replace", "pattern": {"String": "a"}, "content": ""}]),
        json!([{"type": "NFKC"}]),
        json!([{"type": "Strip", "strip_left": true, "strip_right": true},
            {"type": "Replace", "pattern": {"String": "a"}, "content": " "}]),
    ] {
        assert_eq!(least(with(seed(), normalizers, lossy)), 0);
    }
    let split = json!({"type": "Split", "pattern": {"String": "a"}, "behavior": "Removed", "invert": false});
    assert_eq!(least(with(seed(), "/pre_tokenizer", split)), 0);
    assert_eq!(least(with(seed(), "/model/byte_fallback", false)), 0);
    assert_eq!(least(with(seed(), "/model/vocab/ab", 259)), 0, "two tokens of one id");
    assert_eq!(least(with(seed(), "/model/end_of_word_suffix", "x")), 0);
    let shorter = json!([{"type": "Replace", "pattern": {"String": "aaaa"}, "content": "a"}]);
    assert_eq!(least(with(seed(), normalizers, shorter)), 125, "four bytes become one");
}

/// A chain of them would make gigabytes of a word.
#[test]
fn replacements_that_grow_are_stopped() {
    let double = json!({"type": "Replace", "pattern": {"String": "a"}, "content": "aa"});
    let chain = vec![double; 40];
    let tokenizer =
        opened(&with(seeds::sentence_piece(), "/normalizer/normalizers", chain.clone()));
    let error = tokenizer.encode(&"a".repeat(1000), false).expect_err("it grows");
    let expected = "1000 bytes of text cannot be tokenized: a normalizer could make 384000 bytes of \
                    it, expected at most 321536";
    assert_eq!(error.to_string(), expected);
    assert!(!tokenizer.encode("b", false).expect("it does not grow").is_empty());

    let tokenizer = opened(&with(seeds::sentence_piece(), "/decoder/decoders", chain));
    let error = tokenizer.decode(&[259; 1000], false).expect_err("it grows");
    assert!(error.to_string().contains("1000 token ids cannot be decoded: a decoder"), "{error}");
    assert_eq!(tokenizer.decode(&[260], false).expect("it does not grow"), "b");
    assert_eq!(
        (tokenizer.token_bytes(259), tokenizer.token_bytes(260)),
        (None, Some(b"b".to_vec()))
    );

    let letters = json!({"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": false});
    let chain = json!({"type": "Sequence", "pretokenizers": vec![letters; 40]});
    let tokenizer = opened(&with(seeds::byte_level(), "/pre_tokenizer", chain));
    let error = tokenizer.encode(&"é".repeat(1000), false).expect_err("it grows");
    assert!(error.to_string().contains("a pre-tokenizer could make"), "{error}");
}

/// An added token is normalised when the file is read, where nothing else stops a chain.
#[test]
fn added_tokens_do_not_grow_either() {
    let double = json!({"type": "Replace", "pattern": {"String": "s"}, "content": "ss"});
    let seed = with(seeds::sentence_piece(), "/normalizer/normalizers", vec![double; 40]);
    let error = open(&with(seed, "/added_tokens/1/normalized", true)).expect_err("it grows");
    assert!(error.to_string().contains("`added_tokens[1].content`"), "{error}");
    assert!(error.to_string().contains("a normalizer could make"), "{error}");
}

/// The crate indexes beyond the text where a letter stands for none of it.
#[test]
fn text_from_nowhere_cannot_be_changed() {
    for after in
        [json!({"type": "Lowercase"}), json!({"type": "NFC"}), json!({"type": "ByteLevel"})]
    {
        let put = json!({"type": "Replace", "pattern": {"Regex": "^"}, "content": "x"});
        let tokenizer =
            opened(&with(seeds::sentence_piece(), "/normalizer/normalizers", json!([put, after])));
        let error = tokenizer.encode("ab", false).expect_err("it cannot be aligned");
        assert!(
            error.to_string().contains("a normalizer put text where there was none"),
            "{error}"
        );
    }
    let put = json!({"type": "Replace", "pattern": {"Regex": "^"}, "content": "x"});
    let tokenizer = opened(&with(seeds::byte_level(), "/normalizer", put));
    let error = tokenizer.encode("ab", false).expect_err("it cannot be aligned");
    assert!(error.to_string().contains("a normalizer put text where there was none"), "{error}");
}

/// A panic that the checks do not foresee, as in a later version of the crate.
#[cfg(not(target_family = "wasm"))]
#[test]
fn a_panic_within_the_crate_is_an_error_and_the_tokenizer_goes_on() {
    let unchecked = with(seeds::sentence_piece(), "/decoder/decoders/3/stop", 9);
    let inner = tokenizers::Tokenizer::from_bytes(unchecked.to_string()).expect("unchecked");
    let HfTokenizer { vocab_size, around, coverage, .. } = opened(&seeds::sentence_piece());
    let tokenizer = HfTokenizer { inner, vocab_size, around, coverage };
    let ids = tokenizer.encode(" ", false).expect("any text");
    let error = tokenizer.decode(&ids, false).expect_err("it counts back too far");
    assert!(matches!(error, TextError::Decode { .. }));
    assert!(error.to_string().contains("the tokenizers crate panicked: "), "{error}");
    assert_eq!(tokenizer.decode(&[], false).expect("nothing"), "");
    assert_eq!(tokenizer.encode("ab", true).expect("any text"), [1, 262]);
}

/// Dropout and truncation belong to training.
#[test]
fn a_text_has_the_same_ids_each_time() {
    let tokenizer = opened(&seeds::byte_level());
    let first = tokenizer.encode(&"ab ".repeat(100), false).expect("any text");
    assert_eq!(first.len(), 200);
    for _ in 0..20 {
        assert_eq!(tokenizer.encode(&"ab ".repeat(100), false).expect("any text"), first);
    }
}
