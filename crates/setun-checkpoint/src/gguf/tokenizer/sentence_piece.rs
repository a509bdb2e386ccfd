//! `llama`: `SentencePiece`'s BPE.

use serde_json::{Value, json};

use super::{
    Warning, added,
    byte_level::{self, Merges},
    check::{Checked, Role},
    json::{Model, Stages, Tokenizer, template},
    scores,
};
use crate::CheckpointError;

/// What stands for a space.
pub(super) const SPACE: &str = "▁";

/// A file with merges beside its scores has them from a `tokenizer.json`, so they are taken.
pub(super) fn tokenizer<'a>(
    checked: &'a Checked<'a>,
    warnings: &mut Vec<Warning>,
) -> Result<Tokenizer<'a>, CheckpointError> {
    let len = added::model_len(checked);
    let merges = if checked.vocabulary.merges.is_empty() {
        Merges { pairs: scores::merges(checked, len, warnings), end: len }
    } else {
        byte_level::merges(checked, warnings)?
    };
    let prefix = checked.vocabulary.add_space_prefix.unwrap_or(true);
    let stages = Stages {
        normalizer: normalizer(checked, prefix),
        pre_tokenizer: Value::Null,
        post_processor: template(checked, true)?.unwrap_or_default(),
        decoder: decoder(prefix),
    };
    let mut model = Model::new(checked, len.max(merges.end), merges.pairs);
    model.unk_token = checked.special.unknown.map(|id| checked.spelling(id));
    model.fuse_unk = true;
    model.byte_fallback = checked.roles.contains(&Role::Byte);
    Ok(Tokenizer::new(added::added_tokens(checked), stages, model))
}

fn normalizer(checked: &Checked<'_>, prefix: bool) -> Value {
    let mut steps = Vec::new();
    if checked.vocabulary.remove_extra_whitespaces == Some(true) {
        steps.push(json!({"type": "Strip", "strip_left": true, "strip_right": true}));
        steps.push(json!({"type": "Replace", "pattern": {"Regex": " {2,}"}, "content": " "}));
    }
    if prefix {
        steps.push(json!({"type": "Prepend", "prepend": SPACE}));
    }
    steps.push(json!({"type": "Replace", "pattern": {"String": " "}, "content": SPACE}));
    json!({"type": "Sequence", "normalizers": steps})
}

fn decoder(prefix: bool) -> Value {
    let mut steps = vec![
        json!({"type": "Replace", "pattern": {"String": SPACE}, "content": " "}),
        json!({"type": "ByteFallback"}),
        json!({"type": "Fuse"}),
    ];
    if prefix {
        steps.push(json!({"type": "Strip", "content": " ", "start": 1, "stop": 0}));
    }
    json!({"type": "Sequence", "decoders": steps})
}
