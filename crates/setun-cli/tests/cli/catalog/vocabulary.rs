//! The tokenizer of a GGUF file with Qwen's class and special tokens.

use serde_json::Value;

use super::gguf::{field, text};

/// Numbers of the types of values.
pub(super) const U32: u32 = 4;
pub(super) const I32: u32 = 5;
pub(super) const BOOL: u32 = 7;
pub(super) const STRING: u32 = 8;
const ARRAY: u32 = 9;

/// Types of tokens.
const NORMAL: u32 = 1;
const CONTROL: u32 = 3;

/// Special tokens of the small tokenizer, and those of Qwen that stand in their places.
const SPECIAL: [(&str, &str); 4] = [
    ("<|begin_of_text|>", "<|endoftext|>"),
    ("<|end_of_text|>", "<|object_ref_start|>"),
    ("<|start_header_id|>", "<|im_start|>"),
    ("<|eot_id|>", "<|im_end|>"),
];

/// Fields of the vocabulary of a `tokenizer.json` with a splitter of texts, and of a template.
pub(super) fn fields(tokenizer: &str, template: &str, pre: &str) -> Vec<Vec<u8>> {
    let tokenizer: Value = serde_json::from_str(tokenizer).expect("JSON");
    let tokens = tokens(&tokenizer);
    let named = |name: &str| tokens.iter().position(|(token, _)| token == name).expect(name);
    let id = |name: &str| u32::try_from(named(name)).expect("an id").to_le_bytes();
    let merge = |merge: &Value| {
        let parts = [0, 1].map(|part| merge[part].as_str().expect("a text"));
        string(&parts.join(" "))
    };
    let merges = tokenizer["model"]["merges"].as_array().expect("merges").iter().map(merge);
    vec![
        field("tokenizer.ggml.model", STRING, &string("gpt2")),
        field("tokenizer.ggml.pre", STRING, &string(pre)),
        array("tokenizer.ggml.tokens", STRING, tokens.iter().map(|(token, _)| string(token))),
        array(
            "tokenizer.ggml.token_type",
            I32,
            tokens.iter().map(|(_, kind)| kind.to_le_bytes().to_vec()),
        ),
        array("tokenizer.ggml.merges", STRING, merges),
        field("tokenizer.ggml.eos_token_id", U32, &id("<|im_end|>")),
        field("tokenizer.ggml.padding_token_id", U32, &id("<|endoftext|>")),
        field("tokenizer.ggml.add_bos_token", BOOL, &[0]),
        field("tokenizer.chat_template", STRING, &string(template)),
    ]
}

/// Texts and types of all tokens, by id.
fn tokens(tokenizer: &Value) -> Vec<(String, u32)> {
    let vocab = tokenizer["model"]["vocab"].as_object().expect("a vocabulary");
    let plain = vocab.iter().map(|(token, id)| (id, token.clone(), NORMAL));
    let added = tokenizer["added_tokens"].as_array().expect("tokens").iter().map(|token| {
        let content = token["content"].as_str().expect("a text");
        let replaced = SPECIAL.iter().find(|(from, _)| *from == content);
        (&token["id"], replaced.map_or(content, |(_, to)| *to).to_owned(), CONTROL)
    });
    let mut tokens: Vec<_> =
        plain.chain(added).map(|(id, token, kind)| (id.as_u64(), token, kind)).collect();
    tokens.sort();
    tokens.into_iter().map(|(_, token, kind)| (token, kind)).collect()
}

pub(super) fn string(value: &str) -> Vec<u8> {
    let mut bytes = vec![];
    text(&mut bytes, value);
    bytes
}

pub(super) fn array(
    key: &str,
    kind: u32,
    items: impl ExactSizeIterator<Item = Vec<u8>>,
) -> Vec<u8> {
    let mut bytes = kind.to_le_bytes().to_vec();
    bytes.extend((items.len() as u64).to_le_bytes());
    items.for_each(|item| bytes.extend(item));
    field(key, ARRAY, &bytes)
}
