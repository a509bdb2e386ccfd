//! Checks of normalizers, pre-tokenizers, post-processors and decoders.

use serde_json::{Map, Value};

use super::{
    charsmap,
    field::{kind, refused, text_at_most},
    length::Shrinking,
    pattern,
};
use crate::TextError;

/// Stages of one part of a file. Published files have up to ten.
const MAX_STAGES: usize = 64;

/// Bytes that a stage puts in the place of one.
const MAX_CONTENT: usize = 63;

/// Ids that a template puts around a text.
const MAX_TEMPLATE_IDS: usize = 64;

const PRE_TOKENIZERS: [&str; 11] = [
    "BertPreTokenizer",
    "ByteLevel",
    "CharDelimiterSplit",
    "Metaspace",
    "Whitespace",
    "Split",
    "Punctuation",
    "WhitespaceSplit",
    "Digits",
    "UnicodeScripts",
    "FixedLength",
];
const NORMALIZERS: [&str; 13] = [
    "BertNormalizer",
    "Strip",
    "StripAccents",
    "NFC",
    "NFD",
    "NFKC",
    "NFKD",
    "Lowercase",
    "Nmt",
    "Precompiled",
    "Replace",
    "Prepend",
    "ByteLevel",
];
const POST_PROCESSORS: [&str; 4] =
    ["RobertaProcessing", "BertProcessing", "ByteLevel", "TemplateProcessing"];
const DECODERS: [&str; 9] = [
    "BPEDecoder",
    "ByteLevel",
    "WordPiece",
    "Metaspace",
    "CTC",
    "Replace",
    "Fuse",
    "Strip",
    "ByteFallback",
];

type Fields = Map<String, Value>;

/// A stage that is no sequence of others.
struct Stage<'a> {
    /// Where it is in the file.
    field: String,
    kind: &'a str,
    fields: &'a Fields,
}

/// Checks all stages; how they can make a text shorter.
pub(super) fn check(file: &Fields) -> Result<Shrinking, TextError> {
    let mut shrinking = Shrinking::default();
    for stage in stages(file, "normalizer", "normalizers", &NORMALIZERS)? {
        check_normalizer(&stage)?;
        shrinking.add_normalizer(stage.kind, stage.fields);
    }
    for stage in stages(file, "pre_tokenizer", "pretokenizers", &PRE_TOKENIZERS)? {
        check_pre_tokenizer(&stage)?;
        shrinking.add_pre_tokenizer(stage.kind, stage.fields);
    }
    check_post_processors(&stages(file, "post_processor", "processors", &POST_PROCESSORS)?)?;
    let decoders = stages(file, "decoder", "decoders", &DECODERS)?;
    decoders.iter().try_for_each(check_decoder)?;
    Ok(shrinking)
}

/// The stages of a part, those of sequences in their places.
fn stages<'a>(
    file: &'a Fields,
    part: &str,
    list: &str,
    known: &[&str],
) -> Result<Vec<Stage<'a>>, TextError> {
    let mut stages = vec![];
    if let Some(value) = file.get(part).filter(|value| !value.is_null()) {
        flatten(value, part.to_owned(), list, &mut stages)?;
    }
    match stages.iter().find(|stage| !known.contains(&stage.kind)) {
        None => Ok(stages),
        Some(Stage { field, kind, .. }) => {
            let found = format!("`{}`", kind.chars().take(40).collect::<String>());
            Err(refused(format!("{field}.type"), format!("one of {}", known.join(", ")), found))
        }
    }
}

fn flatten<'a>(
    value: &'a Value,
    field: String,
    list: &str,
    stages: &mut Vec<Stage<'a>>,
) -> Result<(), TextError> {
    let object = value.as_object().ok_or_else(|| refused(&field, "an object", kind(value)));
    let fields = object?;
    let Some(kind) = fields.get("type").and_then(Value::as_str) else {
        return Err(refused(format!("{field}.type"), "the name of a stage", "none"));
    };
    // What has the fields of a sequence is built as one, whatever its type says.
    if kind == "Sequence" || fields.contains_key(list) {
        let Some(Value::Array(inside)) = fields.get(list).filter(|_| kind == "Sequence") else {
            return Err(refused(
                format!("{field}.{list}"),
                "a list, in a Sequence only",
                "another",
            ));
        };
        let mut inside = inside.iter().enumerate();
        return inside.try_for_each(|(index, value)| {
            flatten(value, format!("{field}.{list}[{index}]"), list, stages)
        });
    }
    if stages.len() == MAX_STAGES {
        return Err(refused(field, format!("at most {MAX_STAGES} stages"), "more"));
    }
    stages.push(Stage { field, kind, fields });
    Ok(())
}

fn check_normalizer(stage: &Stage<'_>) -> Result<(), TextError> {
    match stage.kind {
        "Replace" => check_replace(stage),
        // The crate does not know this name, and takes the first kind whose fields are there.
        "BertNormalizer" => {
            let flags = ["clean_text", "handle_chinese_chars", "lowercase"];
            match flags.iter().find(|&&flag| !stage.fields.get(flag).is_some_and(Value::is_boolean))
            {
                None => Ok(()),
                Some(flag) => Err(refused(format!("{}.{flag}", stage.field), "a flag", "none")),
            }
        }
        "Prepend" => text_at_most(stage.fields, (&stage.field, "prepend"), MAX_CONTENT).map(drop),
        "Precompiled" => {
            let field = format!("{}.precompiled_charsmap", stage.field);
            let Some(map) = stage.fields.get("precompiled_charsmap").and_then(Value::as_str) else {
                return Err(refused(field, "a text in base64", "none"));
            };
            charsmap::check(map).map_err(|found| refused(field, "a map of characters", found))
        }
        _ => Ok(()),
    }
}

fn check_pre_tokenizer(stage: &Stage<'_>) -> Result<(), TextError> {
    match stage.kind {
        "Split" => check_pattern(stage),
        "FixedLength" if stage.fields.get("length").is_some_and(|length| length == 0) => {
            Err(refused(format!("{}.length", stage.field), "1 or more", "0"))
        }
        _ => Ok(()),
    }
}

fn check_decoder(stage: &Stage<'_>) -> Result<(), TextError> {
    match stage.kind {
        "Replace" => check_replace(stage),
        // The crate counts back from the end of a token without looking where it begins.
        "Strip" if stage.fields.get("stop").is_some_and(|stop| stop != 0) => {
            let found = stage.fields.get("stop").map(kind).unwrap_or_default();
            Err(refused(format!("{}.stop", stage.field), "0", found))
        }
        _ => Ok(()),
    }
}

fn check_replace(stage: &Stage<'_>) -> Result<(), TextError> {
    text_at_most(stage.fields, (&stage.field, "content"), MAX_CONTENT)?;
    check_pattern(stage)
}

fn check_pattern(stage: &Stage<'_>) -> Result<(), TextError> {
    let field = format!("{}.pattern", stage.field);
    let Some(Value::Object(fields)) = stage.fields.get("pattern") else { return Ok(()) };
    text_at_most(fields, (&field, "String"), pattern::MAX_BYTES)?;
    let pattern = text_at_most(fields, (&field, "Regex"), pattern::MAX_BYTES)?;
    pattern::check(pattern)
        .map_err(|(expected, found)| refused(format!("{field}.Regex"), expected, found))
}

fn check_post_processors(stages: &[Stage<'_>]) -> Result<(), TextError> {
    let mut templates = 0;
    for Stage { field, kind, fields } in stages {
        if *kind != "TemplateProcessing" {
            if fields.contains_key("single") {
                return Err(refused(format!("{field}.type"), "TemplateProcessing", *kind));
            }
            continue;
        }
        templates += 1;
        if templates > 1 {
            return Err(refused(field, "one template at most", "a second one"));
        }
        let texts = check_template(fields, field, "single")?;
        if texts != 1 {
            let expected = "the text `A` once and no other";
            return Err(refused(format!("{field}.single"), expected, format!("{texts} texts")));
        }
        check_template(fields, field, "pair")?;
    }
    Ok(())
}

/// Holds the names in a template against the tokens that it brings; how often it has the text.
/// A second text, which a prompt does not have, counts twice.
fn check_template(fields: &Fields, field: &str, name: &str) -> Result<usize, TextError> {
    let (mut texts, mut ids) = (0, 0);
    let pieces = fields.get(name).and_then(Value::as_array).map(Vec::as_slice);
    for (index, piece) in pieces.unwrap_or_default().iter().enumerate() {
        if let Some(text) = piece.get("Sequence") {
            texts += if text.get("id").is_some_and(|id| id == "B") { 2 } else { 1 };
        }
        let Some(token) = piece.get("SpecialToken") else { continue };
        let special = token.get("id").and_then(Value::as_str);
        let tokens = fields.get("special_tokens").and_then(Value::as_object);
        let Some(token) = special.and_then(|special| tokens?.get(special)) else {
            let field = format!("{field}.{name}[{index}]");
            let found = special.map_or("none".to_owned(), |name| kind(&name.into()));
            return Err(refused(field, "a name that `special_tokens` has", found));
        };
        ids += token.get("ids").and_then(Value::as_array).map_or(0, Vec::len);
        if ids > MAX_TEMPLATE_IDS {
            let expected = format!("at most {MAX_TEMPLATE_IDS} tokens around the text");
            return Err(refused(format!("{field}.{name}"), expected, "more"));
        }
    }
    Ok(texts)
}
