//! Small tokenizers of every kind.

use serde_json::{Map, Value, json};

const LLAMA_3: &str = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+";

/// All, with names.
pub(super) fn all() -> [(&'static str, Value); 5] {
    [
        ("sentence_piece", sentence_piece()),
        ("byte_level", byte_level()),
        ("unigram", unigram()),
        ("word_piece", word_piece()),
        ("word_level", word_level()),
    ]
}

pub(super) fn sentence_piece() -> Value {
    let tokens = ["<unk>", "<s>"].map(str::to_owned).into_iter();
    let tokens = tokens.chain((0..=255).map(|byte: u8| format!("<0x{byte:02X}>")));
    let tokens = tokens.chain(["▁", "a", "b", "ab", "▁ab"].map(str::to_owned));
    json!({
        "version": "1.0",
        "truncation": null,
        "padding": null,
        "added_tokens": [added(0, "<unk>"), added(1, "<s>")],
        "normalizer": {"type": "Sequence", "normalizers": [
            {"type": "Prepend", "prepend": "▁"},
            {"type": "Replace", "pattern": {"String": " "}, "content": "▁"},
        ]},
        "pre_tokenizer": null,
        "post_processor": template("<s>", 1),
        "decoder": {"type": "Sequence", "decoders": [
            {"type": "Replace", "pattern": {"String": "▁"}, "content": " "},
            {"type": "ByteFallback"},
            {"type": "Fuse"},
            {"type": "Strip", "content": " ", "start": 1, "stop": 0},
        ]},
        "model": {
            "type": "BPE", "dropout": null, "unk_token": "<unk>",
            "continuing_subword_prefix": null, "end_of_word_suffix": null, "fuse_unk": true,
            "byte_fallback": true, "ignore_merges": false,
            "vocab": vocabulary(tokens),
            "merges": [["a", "b"], ["▁", "ab"]],
        },
    })
}

pub(super) fn byte_level() -> Value {
    let tokens = super::length::alphabet().map(String::from);
    let tokens = tokens.chain(["ab", "Ġa", "Ġab"].map(str::to_owned));
    let byte_level = |use_regex: bool| json!({"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": use_regex});
    json!({
        "version": "1.0",
        "added_tokens": [added(259, "<end>")],
        "normalizer": {"type": "NFC"},
        "pre_tokenizer": {"type": "Sequence", "pretokenizers": [
            {"type": "Split", "pattern": {"Regex": LLAMA_3}, "behavior": "Isolated", "invert": false},
            byte_level(false),
        ]},
        "post_processor": {"type": "Sequence", "processors": [byte_level(true), template("<end>", 259)]},
        "decoder": byte_level(true),
        "model": {
            "dropout": 0.1, "unk_token": null, "continuing_subword_prefix": "",
            "end_of_word_suffix": "", "fuse_unk": false,
            "vocab": vocabulary(tokens),
            "merges": ["a b", "Ġ a", "Ġa b"],
        },
    })
}

pub(super) fn unigram() -> Value {
    let pieces = ["<unk>", "▁", "a", "b", "B", "ab", "▁ab", "</s>"].into_iter();
    let pieces: Vec<Value> =
        pieces.zip(1_u8..).map(|(piece, rank)| json!([piece, -f64::from(rank)])).collect();
    json!({
        "version": "1.0",
        "added_tokens": [added(7, "</s>")],
        "normalizer": {"type": "Sequence", "normalizers": [
            {"type": "Precompiled", "precompiled_charsmap": charsmap(&units(), "B\0")},
            {"type": "Replace", "pattern": {"Regex": " {2,}"}, "content": " "},
        ]},
        "pre_tokenizer": {"type": "Sequence", "pretokenizers": [
            {"type": "WhitespaceSplit"},
            {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "always", "split": true},
        ]},
        "post_processor": template("</s>", 7),
        "decoder": {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "always", "split": true},
        "model": {"type": "Unigram", "unk_id": 0, "vocab": pieces, "byte_fallback": false},
    })
}

pub(super) fn word_piece() -> Value {
    let tokens = ["[UNK]", "[CLS]", "[SEP]", "a", "##b", "##a", "."].map(str::to_owned);
    json!({
        "version": "1.0",
        "added_tokens": [added(1, "[CLS]"), added(2, "[SEP]")],
        "normalizer": {"type": "BertNormalizer", "clean_text": true, "handle_chinese_chars": true,
            "strip_accents": null, "lowercase": true},
        "pre_tokenizer": {"type": "BertPreTokenizer"},
        "post_processor": {"type": "BertProcessing", "sep": ["[SEP]", 2], "cls": ["[CLS]", 1]},
        "decoder": {"type": "WordPiece", "prefix": "##", "cleanup": true},
        "model": {"type": "WordPiece", "unk_token": "[UNK]", "continuing_subword_prefix": "##",
            "max_input_chars_per_word": 100, "vocab": vocabulary(tokens.into_iter())},
    })
}

pub(super) fn word_level() -> Value {
    let tokens = ["<unk>", "a", "b", "ab", ".", "|"].map(str::to_owned);
    json!({
        "version": "1.0",
        "added_tokens": [],
        "normalizer": {"type": "Sequence", "normalizers": [
            {"type": "NFKD"}, {"type": "StripAccents"}, {"type": "Lowercase"}, {"type": "Nmt"},
            {"type": "Strip", "strip_left": true, "strip_right": true},
        ]},
        "pre_tokenizer": {"type": "Sequence", "pretokenizers": [
            {"type": "Whitespace"},
            {"type": "Punctuation", "behavior": "Isolated"},
            {"type": "Digits", "individual_digits": true},
            {"type": "UnicodeScripts"},
            {"type": "FixedLength", "length": 3},
        ]},
        "post_processor": {"type": "RobertaProcessing", "sep": ["a", 1], "cls": ["b", 2],
            "trim_offsets": true, "add_prefix_space": true},
        "decoder": {"type": "CTC", "pad_token": "<unk>", "word_delimiter_token": "|", "cleanup": true},
        "model": {"type": "WordLevel", "unk_token": "<unk>", "vocab": vocabulary(tokens.into_iter())},
    })
}

pub(super) fn added(id: u32, content: &str) -> Value {
    json!({"id": id, "content": content, "single_word": false, "lstrip": false, "rstrip": false,
        "normalized": false, "special": true})
}

/// A template that puts a token before the text.
pub(super) fn template(token: &str, id: u32) -> Value {
    let special = json!({"SpecialToken": {"id": token, "type_id": 0}});
    let text = |name: &str| json!({"Sequence": {"id": name, "type_id": 0}});
    let mut tokens = Map::new();
    tokens.insert(token.to_owned(), json!({"id": token, "ids": [id], "tokens": [token]}));
    json!({"type": "TemplateProcessing", "single": [special, text("A")],
        "pair": [special, text("A"), text("B")], "special_tokens": tokens})
}

fn vocabulary(tokens: impl Iterator<Item = String>) -> Map<String, Value> {
    (0_u32..).zip(tokens).map(|(id, token)| (token, id.into())).collect()
}

/// A trie of one letter: `A` leads to the text at 0.
pub(super) fn units() -> Vec<u32> {
    let mut units = vec![0; 512];
    units[0] = 256 << 10;
    let (place, value) = (256 ^ 0x41, 2);
    units[place] = 0x41 | 1 << 8 | 0x143 << 10;
    assert_eq!(place ^ 0x143, value);
    units[value] = 1 << 31;
    units
}

/// The form in which files have a trie and its texts.
pub(super) fn charsmap(units: &[u32], texts: &str) -> String {
    let size = u32::try_from(4 * units.len()).expect("a small trie");
    let words = std::iter::once(&size).chain(units).flat_map(|word| word.to_le_bytes());
    base64(&words.chain(texts.bytes()).collect::<Vec<_>>())
}

pub(super) fn base64(bytes: &[u8]) -> String {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let group = |bytes: &[u8]| {
        let byte = |place: usize| u32::from(bytes.get(place).copied().unwrap_or_default());
        let word = byte(0) << 16 | byte(1) << 8 | byte(2);
        let letter = |place: usize| {
            let is_padding = place > bytes.len();
            if is_padding { '=' } else { LETTERS[(word >> (18 - 6 * place)) as usize & 63].into() }
        };
        [letter(0), letter(1), letter(2), letter(3)]
    };
    bytes.chunks(3).flat_map(group).collect()
}
