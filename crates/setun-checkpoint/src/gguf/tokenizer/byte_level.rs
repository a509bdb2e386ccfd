//! `gpt2`: byte-level BPE.

use std::collections::HashSet;

use serde_json::{Value, json};

use super::{
    VOCABULARY, Vocabulary, Warning, added,
    check::Checked,
    json::{Model, Stages, Tokenizer, template},
    pre::{self, PreTokenizer},
};
use crate::CheckpointError;

/// Architectures of `BitNet`, whose first files name no pre-tokenizer.
const BITNET: [&str; 3] = ["bitnet", "bitnet-25", "bitnet-b1.58"];
/// The size of Llama 3's vocabulary, and a token of it.
const LLAMA_3: (usize, &str) = (128_256, "<|begin_of_text|>");

pub(super) fn tokenizer<'a>(
    checked: &'a Checked<'a>,
    warnings: &mut Vec<Warning>,
) -> Result<Tokenizer<'a>, CheckpointError> {
    let pre = pre_tokenizer(checked, warnings)?;
    if checked.vocabulary.merges.is_empty() {
        let (field, found) = ("tokenizer.ggml.merges", "missing or empty");
        return Err(CheckpointError::field(VOCABULARY, field, "a list of merges", found));
    }
    let merges = merges(checked, warnings)?;
    let byte_level = |use_regex| {
        json!({
            "type": "ByteLevel",
            "add_prefix_space": false,
            "trim_offsets": true,
            "use_regex": use_regex,
        })
    };
    let post_processor = match template(checked, pre.add_bos)? {
        Some(template) => {
            json!({"type": "Sequence", "processors": [byte_level(false), template]})
        }
        None => byte_level(false),
    };
    let stages = Stages {
        normalizer: if pre.nfc { json!({"type": "NFC"}) } else { Value::Null },
        pre_tokenizer: split(pre, &byte_level),
        post_processor,
        decoder: byte_level(true),
    };
    let len = added::model_len(checked).max(merges.end);
    let mut model = Model::new(checked, len, merges.pairs);
    model.ignore_merges = pre.ignore_merges;
    Ok(Tokenizer::new(added::added_tokens(checked), stages, model))
}

fn pre_tokenizer(
    checked: &Checked<'_>,
    warnings: &mut Vec<Warning>,
) -> Result<&'static PreTokenizer, CheckpointError> {
    let Vocabulary { architecture, pre, tokens, .. } = checked.vocabulary;
    if let Some(name) = pre {
        return pre::named(name);
    }
    let is_llama_3 = tokens.len() == LLAMA_3.0 && checked.ids.contains_key(LLAMA_3.1);
    let is_bitnet = BITNET.contains(&architecture.as_str());
    let assumed = if is_bitnet && is_llama_3 { pre::LLAMA_3 } else { pre::DEFAULT };
    warnings.push(Warning::PreTokenizerAbsent { assumed });
    pre::named(assumed)
}

/// The patterns, and at last the bytes as letters. GPT-2's own pattern comes with these.
fn split(pre: &PreTokenizer, byte_level: &dyn Fn(bool) -> Value) -> Value {
    let (patterns, use_regex) = match pre.patterns.split_last() {
        Some((&pre::GPT_2, patterns)) => (patterns, true),
        _ => (pre.patterns, false),
    };
    let splits = patterns.iter().map(|pattern| {
        json!({
            "type": "Split",
            "pattern": {"Regex": pattern},
            "behavior": "Isolated",
            "invert": false,
        })
    });
    let mut steps: Vec<Value> = splits.chain([byte_level(use_regex)]).collect();
    match steps.len() {
        1 => steps.remove(0),
        _ => json!({"type": "Sequence", "pretokenizers": steps}),
    }
}

/// Merges of tokens that are there.
pub(super) struct Merges<'a> {
    /// The two halves of each, the first merge first.
    pub(super) pairs: Vec<(&'a str, &'a str)>,
    /// One more than the highest id among the halves and what they make.
    pub(super) end: usize,
}

/// The merges, each once.
pub(super) fn merges<'a>(
    checked: &Checked<'a>,
    warnings: &mut Vec<Warning>,
) -> Result<Merges<'a>, CheckpointError> {
    let given = &checked.vocabulary.merges;
    let mut merges = Merges { pairs: Vec::with_capacity(given.len()), end: 0 };
    let mut seen = HashSet::with_capacity(given.len());
    let mut joined = String::new();
    for (index, merge) in given.iter().enumerate() {
        let missing = |missing: &str| CheckpointError::Merge {
            index,
            merge: merge.clone(),
            missing: missing.to_owned(),
        };
        let (left, right) = halves(merge).ok_or_else(|| missing(""))?;
        joined.clear();
        joined.push_str(left);
        joined.push_str(right);
        let id = |token: &str| checked.ids.get(token).copied().ok_or_else(|| missing(token));
        let pair = (id(left)?, id(right)?);
        let highest = id(&joined)?.max(pair.0).max(pair.1);
        merges.end = merges.end.max(highest as usize + 1);
        if seen.insert(pair) {
            merges.pairs.push((left, right));
        }
    }
    let count = given.len() - merges.pairs.len();
    if count > 0 {
        warnings.push(Warning::RepeatedMerges { count });
    }
    Ok(merges)
}

/// The two tokens of a merge. The first may itself begin with a space.
fn halves(merge: &str) -> Option<(&str, &str)> {
    let first = merge.chars().next()?.len_utf8();
    let space = merge[first..].find(' ')? + first;
    Some((&merge[..space], &merge[space + 1..])).filter(|(_, right)| !right.is_empty())
}
