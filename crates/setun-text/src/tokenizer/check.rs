//! Checks of a `tokenizer.json` before its parts are built.
//!
//! The `tokenizers` crate indexes and unwraps what a file says. So the file is read as a value
//! first, and the crate is given the very value that was checked: what two readers of JSON could
//! see differently, such as a key that stands twice, is decided before.

use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use tokenizers::{
    AddedToken, DecoderWrapper, Encoding, ModelWrapper, NormalizerWrapper, PostProcessor as _,
    PostProcessorWrapper, PreTokenizerWrapper, Token,
    models::{
        bpe::{BPE, Vocab},
        unigram::Unigram,
        wordlevel::WordLevel,
        wordpiece::WordPiece,
    },
};

use super::{
    encode,
    field::{kind, refused, too_long},
    length::Shrinking,
    model, stages,
};
use crate::{TextError, without_mark};

/// How deep values may be nested: published files are, some eight deep.
const MAX_DEPTH: usize = 32;

/// The longest added token in bytes, as it stands and normalised. An automaton of all of them is
/// built, with up to a kilobyte for each byte.
const MAX_ADDED_BYTES: usize = 512;

/// An id that no vocabulary has, to find a prompt's place in what a post-processor makes of it.
const PROMPT: u32 = u32::MAX;

/// A file whose fields are safe to build a tokenizer from.
pub(super) struct CheckedFile {
    /// All but the added tokens.
    pub(super) tokenizer: Value,
    pub(super) added_tokens: Vec<AddedToken>,
    pub(super) shrinking: Shrinking,
}

/// Reads and checks a file.
pub(super) fn checked(bytes: &[u8]) -> Result<CheckedFile, TextError> {
    let bytes = without_mark(bytes);
    let mut tokenizer: Value = serde_json::from_slice(bytes).map_err(|error| unreadable(&error))?;
    check_depth(&tokenizer, MAX_DEPTH)?;
    let reason = format!("expected an object, found {}", kind(&tokenizer));
    let file = tokenizer.as_object_mut().ok_or(TextError::TokenizerFile { reason })?;
    for unused in ["truncation", "padding"] {
        file.insert(unused.to_owned(), Value::Null);
    }
    let added = file.insert("added_tokens".to_owned(), Value::Array(vec![]));
    let added_tokens = added.map(added_tokens).transpose()?.unwrap_or_default();
    let mut shrinking = stages::check(file)?;
    shrinking.drops_space |= added_tokens.iter().any(|token| token.lstrip || token.rstrip);
    model::check(file.get_mut("model").unwrap_or(&mut Value::Null))?;
    Ok(CheckedFile { tokenizer, added_tokens, shrinking })
}

/// Builds what was checked. Added tokens come last: each is normalised, which is bounded here.
pub(super) fn build(
    tokenizer: Value,
    added_tokens: &[AddedToken],
) -> Result<tokenizers::Tokenizer, TextError> {
    let mut tokenizer = without_added(tokenizer)?;
    for (index, token) in added_tokens.iter().enumerate().filter(|(_, token)| token.normalized) {
        let normalised = encode::normalised_length(&tokenizer, &token.content);
        if !token.content.is_empty() && !matches!(normalised, Ok(1..=MAX_ADDED_BYTES)) {
            let found = normalised.map_or_else(|reason| reason, |bytes| format!("{bytes} bytes"));
            let expected = format!("1 to {MAX_ADDED_BYTES} bytes after the normalizer");
            return Err(refused(format!("added_tokens[{index}].content"), expected, found));
        }
    }
    tokenizer.add_tokens(added_tokens);
    Ok(tokenizer)
}

/// Builds all but the added tokens. The type of the model is known here: the crate's own reader copies the
/// whole vocabulary twice to find it.
fn without_added(mut file: Value) -> Result<tokenizers::Tokenizer, TextError> {
    let mut part = |name: &str| file.get_mut(name).map(Value::take).unwrap_or_default();
    match part("version") {
        Value::Null => {}
        version if version == "1.0" => {}
        other => return Err(refused("version", "1.0", kind(&other))),
    }
    let mut tokenizer = tokenizers::Tokenizer::new(model(part("model"))?);
    tokenizer.with_normalizer(read::<Option<NormalizerWrapper>>(part("normalizer"))?);
    tokenizer.with_pre_tokenizer(read::<Option<PreTokenizerWrapper>>(part("pre_tokenizer"))?);
    tokenizer.with_post_processor(read::<Option<PostProcessorWrapper>>(part("post_processor"))?);
    tokenizer.with_decoder(read::<Option<DecoderWrapper>>(part("decoder"))?);
    Ok(tokenizer)
}

/// Builds a model, whose type is named since it was checked. The crate reads the other fields.
fn model(mut model: Value) -> Result<ModelWrapper, TextError> {
    let name = model.as_object_mut().and_then(|fields| fields.remove("type")).unwrap_or_default();
    Ok(match name.as_str() {
        Some("BPE") => bpe(model)?.into(),
        Some("WordPiece") => read::<WordPiece>(model)?.into(),
        Some("WordLevel") => read::<WordLevel>(model)?.into(),
        Some("Unigram") => read::<Unigram>(model)?.into(),
        _ => {
            let expected = "BPE, WordPiece, WordLevel or Unigram";
            return Err(refused("model.type", expected, kind(&name)));
        }
    })
}

/// Builds a model of pairs. The crate's own reader copies each merge twice, to find out how it is written.
fn bpe(mut model: Value) -> Result<BPE, TextError> {
    let parts = ["vocab", "merges"].map(|name| model.get_mut(name).map(Value::take));
    let (vocab, merges) = match parts {
        [Some(Value::Object(vocab)), Some(Value::Array(merges))] if merges.iter().all(is_pair) => {
            (vocab, merges)
        }
        [vocab, merges] => {
            for (name, part) in [("vocab", vocab), ("merges", merges)] {
                if let Some(part) = part {
                    model[name] = part;
                }
            }
            return read(model);
        }
    };
    model["vocab"] = Value::Object(Map::new());
    model["merges"] = Value::Array(vec![]);
    let options: BPE = read(model)?;
    let id = |id: &Value| id.as_u64().and_then(|id| u32::try_from(id).ok()).unwrap_or_default();
    let vocab: Vocab = vocab.into_iter().map(|(token, value)| (token, id(&value))).collect();
    let merges = merges.into_iter().filter_map(pair).collect();
    let mut builder = BPE::builder().vocab_and_merges(vocab, merges);
    if let Some(prefix) = &options.continuing_subword_prefix {
        builder = builder.continuing_subword_prefix(prefix.clone());
    }
    let mut built =
        builder.build().map_err(|error| TextError::TokenizerFile { reason: error.to_string() })?;
    built.dropout = options.dropout;
    built.unk_token = options.unk_token;
    built.end_of_word_suffix = options.end_of_word_suffix;
    built.fuse_unk = options.fuse_unk;
    built.byte_fallback = options.byte_fallback;
    built.ignore_merges = options.ignore_merges;
    Ok(built)
}

fn is_pair(merge: &Value) -> bool {
    matches!(merge.as_array().map(Vec::as_slice), Some([Value::String(_), Value::String(_)]))
}

fn pair(merge: Value) -> Option<(String, String)> {
    let Value::Array(halves) = merge else { return None };
    match <[Value; 2]>::try_from(halves) {
        Ok([Value::String(left), Value::String(right)]) => Some((left, right)),
        _ => None,
    }
}

fn read<T: DeserializeOwned>(part: Value) -> Result<T, TextError> {
    serde_json::from_value(part).map_err(|error| unreadable(&error))
}

/// The ids that the post-processor puts before and behind a prompt.
pub(super) fn around(tokenizer: &tokenizers::Tokenizer) -> Result<[Vec<u32>; 2], TextError> {
    let Some(processor) = tokenizer.get_post_processor() else { return Ok([vec![], vec![]]) };
    let prompt = Encoding::from_tokens(vec![Token::new(PROMPT, String::new(), (0, 0))], 0);
    let all = processor.process(prompt, None, true);
    let all = all.map_err(|error| TextError::TokenizerFile { reason: error.to_string() })?;
    let mut parts = all.get_ids().splitn(2, |&id| id == PROMPT).map(<[u32]>::to_vec);
    let around = [parts.next().unwrap_or_default(), parts.next().unwrap_or_default()];
    match around.iter().flatten().find(|&&id| tokenizer.id_to_token(id).is_none()) {
        None => Ok(around),
        Some(id) => {
            let expected = "ids of the vocabulary around a prompt";
            Err(refused("post_processor", expected, format!("token {id}")))
        }
    }
}

fn added_tokens(tokens: Value) -> Result<Vec<AddedToken>, TextError> {
    let tokens: Vec<AddedToken> = serde_json::from_value(tokens).map_err(|error| {
        let expected = "a list of tokens with `content` and five flags";
        refused("added_tokens", expected, error.to_string())
    })?;
    for (index, token) in tokens.iter().enumerate() {
        let bytes = token.content.len();
        if bytes > MAX_ADDED_BYTES {
            let field = format!("added_tokens[{index}].content");
            return Err(too_long(field, MAX_ADDED_BYTES, bytes));
        }
        // Each of a run of such tokens would look through all of the run for its spaces.
        if (token.lstrip || token.rstrip) && token.content.trim().is_empty() {
            let field = format!("added_tokens[{index}]");
            let expected = "a token with a letter or sign, as it takes in the spaces beside it";
            return Err(refused(field, expected, format!("{bytes} bytes of space")));
        }
    }
    Ok(tokens)
}

fn check_depth(value: &Value, left: usize) -> Result<(), TextError> {
    let inside: &mut dyn Iterator<Item = &Value> = match value {
        Value::Array(values) => &mut values.iter(),
        Value::Object(fields) => &mut fields.values(),
        _ => return Ok(()),
    };
    if left == 0 {
        let reason = format!("more than {MAX_DEPTH} levels of nesting");
        return Err(TextError::TokenizerFile { reason });
    }
    for value in inside {
        check_depth(value, left - 1)?;
    }
    Ok(())
}

fn unreadable(error: &serde_json::Error) -> TextError {
    TextError::TokenizerFile { reason: error.to_string() }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// The model of pairs is the one that the crate's own reader makes.
    #[test]
    fn a_model_of_pairs_is_the_one_that_the_crate_reads() {
        let model = |merges: Value| {
            json!({
                "vocab": {"a": 0, "##b": 1, "##c": 2, "ab": 3, "abc": 4, "a##b": 5, "<u>": 6}, "merges": merges,
                "unk_token": "<u>", "continuing_subword_prefix": "##", "end_of_word_suffix": "</w>",
                "fuse_unk": true, "byte_fallback": true, "ignore_merges": true, "dropout": null,
            })
        };
        let pairs = json!([["a", "##b"], ["ab", "##c"]]);
        for merges in [pairs.clone(), json!(["a ##b", "ab ##c"]), json!([])] {
            let expected: BPE = serde_json::from_value(model(merges.clone())).expect("a model");
            assert!(bpe(model(merges.clone())).expect("a model") == expected, "{merges}");
        }
        let mut plain = model(pairs);
        for name in ["unk_token", "continuing_subword_prefix", "fuse_unk", "ignore_merges"] {
            plain.as_object_mut().expect("fields").remove(name);
        }
        plain["merges"] = json!([["a", "##b"]]);
        let expected: BPE = serde_json::from_value(plain.clone()).expect("a model");
        assert!(bpe(plain).expect("a model") == expected);
    }

    #[test]
    fn a_wrong_model_of_pairs_is_refused_in_the_crates_words() {
        for (vocab, merges) in [
            (json!({"a": 0}), json!([["a", "b"]])),
            (json!({"a": 0}), json!([["a"]])),
            (json!({"a": 0}), json!([["a", "a", "a"]])),
            (json!({"a": 0}), json!([["a", "a"], "a a"])),
            (json!({"a": 0}), json!([1])),
            (json!({"a": 0}), json!({})),
            (json!([]), json!([])),
        ] {
            let model = json!({"vocab": vocab, "merges": merges});
            let expected = serde_json::from_value::<BPE>(model.clone()).expect_err("a refusal");
            let TextError::TokenizerFile { reason } = bpe(model).expect_err("a refusal") else {
                panic!("{merges}");
            };
            assert_eq!(reason, expected.to_string());
        }
        for missing in [json!({"vocab": {}}), json!({"merges": []})] {
            assert!(bpe(missing).is_err());
        }
    }
}
