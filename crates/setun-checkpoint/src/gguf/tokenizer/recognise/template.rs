//! Special tokens that a post-processor adds to a text.

use serde_json::Value;

use super::unsupported;
use crate::CheckpointError;

/// The special tokens around a text.
#[derive(Default, PartialEq, Eq)]
pub(super) struct Template {
    pub(super) before: Option<String>,
    pub(super) behind: Option<String>,
}

/// Reads a post-processor.
pub(super) fn read(processor: &Value) -> Result<Template, CheckpointError> {
    match processor["type"].as_str() {
        None | Some("ByteLevel") => Ok(Template::default()),
        Some("TemplateProcessing") => template(processor),
        Some("Sequence") => {
            let mut found = Template::default();
            for step in processor["processors"].as_array().into_iter().flatten() {
                let template = read(step)?;
                if template == Template::default() {
                    continue;
                }
                if found != Template::default() {
                    return Err(refused(processor));
                }
                found = template;
            }
            Ok(found)
        }
        Some(_) => Err(refused(processor)),
    }
}

fn template(processor: &Value) -> Result<Template, CheckpointError> {
    let special = |piece: &Value| piece["SpecialToken"]["id"].as_str().map(str::to_owned);
    let pieces = processor["single"].as_array().map(Vec::as_slice).unwrap_or_default();
    let is_text = |piece: &Value| piece.get("Sequence").is_some();
    match pieces {
        [text] if is_text(text) => Ok(Template::default()),
        [before, text] if is_text(text) => Ok(Template { before: special(before), behind: None }),
        [text, behind] if is_text(text) => Ok(Template { before: None, behind: special(behind) }),
        [before, text, behind] if is_text(text) => {
            Ok(Template { before: special(before), behind: special(behind) })
        }
        _ => Err(refused(processor)),
    }
}

fn refused(processor: &Value) -> CheckpointError {
    unsupported("post_processor", processor, "one token before a text, one behind it")
}
