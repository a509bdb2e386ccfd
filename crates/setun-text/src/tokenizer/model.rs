//! Checks of the model of a `tokenizer.json`: its vocabulary, merges, prefixes and scores.

use serde_json::{Map, Value};

use super::field::{kind, refused, text_at_most, too_long};
use crate::TextError;

/// The longest token in bytes; published ones have up to 1,000.
const MAX_TOKEN_BYTES: usize = 4096;

/// Ids are below this: published vocabularies have up to 2^20.
const MAX_ID: u64 = 1 << 22;

/// Ids without a token: some, and as many for each token.
const MAX_HOLES: u64 = 1 << 16;
const MAX_HOLES_EACH: u64 = 8;

/// Prefixes and suffixes are put to each character of a text.
const MAX_AFFIX: usize = 64;

/// The name of the unknown token stands for each that is not known.
const MAX_UNKNOWN: usize = 256;

/// Characters of a word that `WordPiece` looks at: it tries each of its pieces. 100 is usual.
const MAX_WORD: u64 = 256;

/// Of Unigram: the longest token, which is a chain of nodes; bytes of all, of which each may take
/// 400 in memory; and bytes of all tokens that begin another, which a character may have to read.
const MAX_PIECE_BYTES: usize = 512;
const MAX_PIECES_BYTES: usize = 1 << 23;
const MAX_CHAIN: usize = 4096;

type Fields = Map<String, Value>;

/// Checks a model, gives one of an old file its type, and leaves dropout out: it belongs to
/// training, and a prompt has the same tokens each time.
pub(super) fn check(model: &mut Value) -> Result<(), TextError> {
    let found = kind(model);
    let fields = model.as_object_mut().ok_or_else(|| refused("model", "an object", found))?;
    if fields.contains_key("dropout") {
        fields.insert("dropout".to_owned(), Value::Null);
    }
    let name = match fields.get("type") {
        Some(Value::String(name)) => name.clone(),
        Some(other) => return Err(refused("model.type", "the name of a model", kind(other))),
        None => {
            let name = kind_of_old(fields).to_owned();
            fields.insert("type".to_owned(), name.clone().into());
            name
        }
    };
    text_at_most(fields, ("model", "unk_token"), MAX_UNKNOWN)?;
    text_at_most(fields, ("model", "end_of_word_suffix"), MAX_AFFIX)?;
    let prefix = text_at_most(fields, ("model", "continuing_subword_prefix"), MAX_AFFIX)?;
    match name.as_str() {
        "Unigram" => return check_pieces(fields),
        "BPE" if !prefix.is_empty() => check_merges(fields, prefix.len())?,
        "WordPiece" => check_word(fields)?,
        _ => {}
    }
    check_vocabulary(fields)
}

/// The type of a model that was written before files had it.
fn kind_of_old(fields: &Fields) -> &'static str {
    let has = |name| fields.contains_key(name);
    match fields.get("vocab") {
        Some(Value::Array(_)) => "Unigram",
        _ if has("merges") => "BPE",
        _ if has("max_input_chars_per_word") => "WordPiece",
        _ => "WordLevel",
    }
}

fn check_vocabulary(fields: &Fields) -> Result<(), TextError> {
    let Some(Value::Object(vocabulary)) = fields.get("vocab") else {
        let found = fields.get("vocab").map_or("none".to_owned(), kind);
        return Err(refused("model.vocab", "tokens and their ids", found));
    };
    let count = vocabulary.len() as u64;
    let limit = MAX_ID.min(count.saturating_mul(MAX_HOLES_EACH) + MAX_HOLES);
    for (token, id) in vocabulary {
        if token.len() > MAX_TOKEN_BYTES {
            return Err(too_long("model.vocab".to_owned(), MAX_TOKEN_BYTES, token.len()));
        }
        if id.as_u64().is_none_or(|id| id >= limit) {
            let expected = format!("ids below {limit}, as there are {count} tokens");
            let found = format!("{} of {}", kind(id), kind(&token.as_str().into()));
            return Err(refused("model.vocab", expected, found));
        }
    }
    Ok(())
}

/// The second half of a merge loses as many bytes as the prefix has.
fn check_merges(fields: &Fields, prefix: usize) -> Result<(), TextError> {
    let merges = fields.get("merges").and_then(Value::as_array).map(Vec::as_slice);
    for (index, merge) in merges.unwrap_or_default().iter().enumerate() {
        let text = || Some(merge.as_str()?.split_once(' ')?.1);
        let right = merge.get(1).and_then(Value::as_str).or_else(text).unwrap_or_default();
        if right.get(prefix..).is_none() {
            let expected = format!("a second half that begins with the prefix of {prefix} bytes");
            let found = kind(&right.into());
            return Err(refused(format!("model.merges[{index}]"), expected, found));
        }
    }
    Ok(())
}

fn check_word(fields: &Fields) -> Result<(), TextError> {
    let name = "max_input_chars_per_word";
    match fields.get(name) {
        Some(most) if most.as_u64().is_none_or(|most| most > MAX_WORD) => {
            Err(refused(format!("model.{name}"), format!("at most {MAX_WORD}"), kind(most)))
        }
        _ => Ok(()),
    }
}

fn check_pieces(fields: &Fields) -> Result<(), TextError> {
    let vocabulary = fields.get("vocab").and_then(Value::as_array).map(Vec::as_slice);
    let pieces = vocabulary.unwrap_or_default().iter();
    let mut pieces: Vec<&str> = pieces.filter_map(|piece| piece.get(0)?.as_str()).collect();
    let field = || "model.vocab".to_owned();
    if let Some(piece) = pieces.iter().find(|piece| piece.len() > MAX_PIECE_BYTES) {
        return Err(too_long(field(), MAX_PIECE_BYTES, piece.len()));
    }
    let bytes = pieces.iter().map(|piece| piece.len()).sum();
    if bytes > MAX_PIECES_BYTES {
        return Err(too_long(field(), MAX_PIECES_BYTES, bytes));
    }
    pieces.sort_unstable();
    pieces.dedup();
    let mut chain: Vec<(&str, usize)> = vec![];
    for piece in pieces {
        while chain.last().is_some_and(|(last, _)| !piece.starts_with(last)) {
            chain.pop();
        }
        let read = chain.last().map_or(0, |(_, read)| *read) + piece.len();
        if read > MAX_CHAIN {
            let expected = format!("at most {MAX_CHAIN} bytes of tokens that begin one token");
            return Err(refused(field(), expected, format!("{read} at {}", kind(&piece.into()))));
        }
        chain.push((piece, read));
    }
    Ok(())
}
