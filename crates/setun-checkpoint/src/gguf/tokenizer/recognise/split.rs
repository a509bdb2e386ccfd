//! The GGUF name for a way to split and normalise text.

use serde_json::Value;

use super::{SPACE, Source, Warning, unsupported};
use crate::{
    CheckpointError,
    gguf::tokenizer::pre::{self, PreTokenizer, TABLE},
};

/// One step of a pre-tokenizer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum SplitStep {
    /// Cut into the matches of a pattern and what lies between.
    Pattern(String),
    /// Bytes become letters.
    ByteLevel,
    /// Spaces become [`SPACE`], with one before a text: `always`, `first` or `never`.
    Metaspace(String),
}

/// The steps of a pre-tokenizer, in order.
pub(super) fn steps(pre_tokenizer: &Value) -> Result<Vec<SplitStep>, CheckpointError> {
    let refused = || unsupported("pre_tokenizer", pre_tokenizer, "patterns and ByteLevel");
    let is = |field: &str, expected: bool| pre_tokenizer[field].as_bool() == Some(expected);
    let pattern = |pattern: &str| vec![SplitStep::Pattern(canonical(pattern))];
    Ok(match pre_tokenizer["type"].as_str() {
        None => vec![],
        Some("Sequence") => {
            let parts = pre_tokenizer["pretokenizers"].as_array().into_iter().flatten();
            parts.map(steps).collect::<Result<Vec<_>, _>>()?.concat()
        }
        Some("Split") if pre_tokenizer["behavior"] == "Isolated" && !is("invert", true) => {
            pattern(pre_tokenizer["pattern"]["Regex"].as_str().ok_or_else(refused)?)
        }
        Some("Digits") if is("individual_digits", true) => pattern(pre::DIGIT),
        Some("Digits") => pattern(pre::DIGITS),
        Some("Punctuation") if pre_tokenizer["behavior"] == "Contiguous" => {
            pattern(pre::PUNCTUATION)
        }
        Some("ByteLevel") if is("add_prefix_space", true) => return Err(refused()),
        // The pattern belongs to files that are older than the field, too.
        Some("ByteLevel") if is("use_regex", false) => vec![SplitStep::ByteLevel],
        Some("ByteLevel") => vec![SplitStep::Pattern(canonical(pre::GPT_2)), SplitStep::ByteLevel],
        Some("Metaspace") if !is("split", true) => {
            let scheme = pre_tokenizer["prepend_scheme"].as_str().unwrap_or("always");
            vec![SplitStep::Metaspace(scheme.to_owned())]
        }
        Some(_) => return Err(refused()),
    })
}

/// A pattern with line ends as escapes and all other characters as themselves: files differ in
/// that.
fn canonical(pattern: &str) -> String {
    let pattern = pattern.replace('\r', "\\r").replace('\n', "\\n");
    let mut parts = pattern.split("\\x{");
    let mut plain = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let number = part.split_once('}');
        let char = number.and_then(|(digits, rest)| {
            let char = char::from_u32(u32::from_str_radix(digits, 16).ok()?)?;
            Some((char, rest))
        });
        if let Some((char, rest)) = char {
            plain.push(char);
            plain.push_str(rest);
        } else {
            plain.push_str("\\x{");
            plain.push_str(part);
        }
    }
    plain
}

/// The name of byte-level steps.
pub(super) fn name(
    source: &Source,
    steps: &[SplitStep],
    warnings: &mut Vec<Warning>,
) -> Result<&'static str, CheckpointError> {
    let found: Vec<&str> = steps.iter().filter_map(pattern).collect();
    let nfc = normalizes(&source.normalizer, warnings);
    let fits = |row: &&PreTokenizer| {
        let are = |patterns: &[&str]| {
            !patterns.is_empty()
                && found.iter().eq(patterns
                    .iter()
                    .map(|one| canonical(one))
                    .collect::<Vec<_>>()
                    .iter())
        };
        row.ignore_merges == source.model.ignore_merges
            && (are(row.patterns) || are(row.alternative))
    };
    if let Some(row) = TABLE.iter().filter(fits).find(|row| row.nfc == nfc) {
        return Ok(row.names[0]);
    }
    let row = TABLE.iter().find(fits).ok_or_else(|| {
        let supported = format!("those of {}", pre::known_pre_tokenizers().join(", "));
        unsupported("way to split text", &source.pre_tokenizer, &supported)
    })?;
    let normalizer = if row.nfc { "NFC, as the name says" } else { "NFC" }.to_owned();
    warnings.push(Warning::Normalizer { normalizer });
    Ok(row.names[0])
}

fn pattern(step: &SplitStep) -> Option<&str> {
    match step {
        SplitStep::Pattern(pattern) => Some(pattern),
        _ => None,
    }
}

/// Whether text is brought into form NFC; another normalizer is reported.
fn normalizes(normalizer: &Value, warnings: &mut Vec<Warning>) -> bool {
    let empty = || normalizer["normalizers"].as_array().is_some_and(Vec::is_empty);
    match normalizer["type"].as_str() {
        None => false,
        Some("NFC") => true,
        Some("Sequence") if empty() => false,
        Some(_) => {
            warnings.push(Warning::Normalizer { normalizer: normalizer.to_string() });
            false
        }
    }
}

/// Whether a tokenizer of `SentencePiece`'s kind puts a space before a text.
pub(super) fn space_prefix(
    source: &Source,
    steps: &[SplitStep],
    warnings: &mut Vec<Warning>,
) -> Result<bool, CheckpointError> {
    let scheme = match steps {
        [] => None,
        [SplitStep::Metaspace(scheme)] => Some(scheme.as_str()),
        _ => return Err(refused(&source.pre_tokenizer)),
    };
    let normalizer = &source.normalizer;
    let parts = match normalizer["type"].as_str() {
        Some("Sequence") => {
            normalizer["normalizers"].as_array().map_or(vec![], |all| all.iter().collect())
        }
        Some(_) => vec![normalizer],
        None => vec![],
    };
    let is_prefix = |part: &Value| part["type"] == "Prepend" && part["prepend"] == SPACE;
    let is_replacement = |part: &Value| {
        part["type"] == "Replace" && part["pattern"]["String"] == " " && part["content"] == SPACE
    };
    match (scheme, parts.as_slice()) {
        (None, [prefix, replace]) if is_prefix(prefix) && is_replacement(replace) => Ok(true),
        (None, [replace]) if is_replacement(replace) => Ok(false),
        (Some("always"), []) => Ok(true),
        (Some("never"), []) => Ok(false),
        (Some("first"), []) => {
            warnings.push(Warning::SpacePrefix);
            Ok(true)
        }
        _ => Err(refused(normalizer)),
    }
}

fn refused(found: &Value) -> CheckpointError {
    unsupported("normalizer or pre_tokenizer", found, "spaces as ▁, and byte-level BPE")
}
