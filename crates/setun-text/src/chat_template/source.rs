//! Finds templates and special tokens in a model's files.

use serde_json::{Map, Value};

use crate::{ChatTemplateFiles, TextError, without_mark};

/// What the files hold.
#[derive(Debug)]
pub(super) struct Sources {
    /// Name and text of each template. One that has no name is `default`.
    pub(super) templates: Vec<(String, String)>,
    /// Name and spelling of each special token the model has.
    pub(super) special_tokens: Map<String, Value>,
}

const CONFIG: &str = "tokenizer_config.json";

/// The tokens that `tokenizer_config.json` names one by one.
const SPECIAL_TOKENS: [&str; 7] =
    ["bos_token", "eos_token", "unk_token", "sep_token", "pad_token", "cls_token", "mask_token"];

impl Sources {
    pub(super) fn read(files: ChatTemplateFiles<'_>) -> Result<Self, TextError> {
        let config = files.tokenizer_config.map(|bytes| object(CONFIG, bytes)).transpose()?;
        let config = config.unwrap_or_default();
        let jinja = files.chat_template_jinja.filter(|bytes| !bytes.trim_ascii().is_empty());
        let templates = match jinja {
            Some(bytes) => vec![("default".to_owned(), text("chat_template.jinja", bytes)?)],
            None => match (templates(CONFIG, &config)?, files.chat_template_json) {
                (found, Some(bytes)) if found.is_empty() => {
                    templates("chat_template.json", &object("chat_template.json", bytes)?)?
                }
                (found, _) => found,
            },
        };
        Ok(Self { templates, special_tokens: special_tokens(&config)? })
    }
}

fn text(file: &'static str, bytes: &[u8]) -> Result<String, TextError> {
    std::str::from_utf8(bytes).map(str::to_owned).map_err(|error| TextError::ConfigFile {
        file,
        expected: "UTF-8",
        found: error.to_string(),
    })
}

fn object(file: &'static str, bytes: &[u8]) -> Result<Map<String, Value>, TextError> {
    serde_json::from_slice(without_mark(bytes)).map_err(|error| TextError::ConfigFile {
        file,
        expected: "a JSON object",
        found: error.to_string(),
    })
}

/// The entry `chat_template`: a string, a list of `{name, template}`, or nothing. A blank text is no template.
fn templates(
    file: &'static str,
    config: &Map<String, Value>,
) -> Result<Vec<(String, String)>, TextError> {
    let wrong = |found: &Value| TextError::ConfigFile {
        file,
        expected: "chat_template to be a string or a list of {name, template}",
        found: kind(found).to_owned(),
    };
    let mut found = match config.get("chat_template") {
        None | Some(Value::Null) => vec![],
        Some(Value::String(template)) => vec![("default".to_owned(), template.clone())],
        Some(Value::Array(list)) => list
            .iter()
            .map(|entry| match (&entry["name"], &entry["template"]) {
                (Value::String(name), Value::String(template)) => {
                    Ok((name.clone(), template.clone()))
                }
                _ => Err(wrong(entry)),
            })
            .collect::<Result<_, _>>()?,
        Some(other) => return Err(wrong(other)),
    };
    found.retain(|(_, template)| !template.trim().is_empty());
    Ok(found)
}

/// The special tokens that are set: each a string, or an object with its `content`.
fn special_tokens(config: &Map<String, Value>) -> Result<Map<String, Value>, TextError> {
    let mut found = Map::new();
    for name in SPECIAL_TOKENS {
        let spelling = match config.get(name) {
            None | Some(Value::Null) => continue,
            Some(Value::Object(token)) => token.get("content").unwrap_or(&Value::Null),
            Some(other) => other,
        };
        if !spelling.is_string() {
            return Err(TextError::ConfigFile {
                file: CONFIG,
                expected: "special tokens to be strings or objects with a string `content`",
                found: format!("{name}: {}", kind(spelling)),
            });
        }
        found.insert(name.to_owned(), spelling.clone());
    }
    Ok(found)
}

fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "an array",
        Value::Object(_) => "an object without these entries",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(config: &str, jinja: Option<&str>, json: Option<&str>) -> Result<Sources, TextError> {
        Sources::read(ChatTemplateFiles {
            tokenizer_config: Some(config.as_bytes()),
            chat_template_jinja: jinja.map(str::as_bytes),
            chat_template_json: json.map(str::as_bytes),
        })
    }

    fn template(config: &str, jinja: Option<&str>, json: Option<&str>) -> String {
        read(config, jinja, json).expect("good files").templates[0].1.clone()
    }

    #[test]
    fn a_file_of_its_own_goes_before_the_entry_and_the_entry_before_the_old_file() {
        let (config, json) = (r#"{"chat_template": "entry"}"#, r#"{"chat_template": "old"}"#);
        assert_eq!(template(config, Some("file"), Some(json)), "file");
        assert_eq!(template(config, None, Some(json)), "entry");
        assert_eq!(template("{}", None, Some(json)), "old");
        assert!(read("{}", None, None).expect("good files").templates.is_empty());
    }

    #[test]
    fn a_blank_text_is_no_template() {
        let blank = [r#""""#, r#"" \n""#, "[]", r#"[{"name": "default", "template": ""}]"#];
        for value in blank {
            let config = format!(r#"{{"chat_template": {value}}}"#);
            assert!(read(&config, None, None).expect("good files").templates.is_empty(), "{value}");
            let old = r#"{"chat_template": "old"}"#;
            assert_eq!(template(&config, None, Some(old)), "old");
        }
        assert_eq!(template(r#"{"chat_template": "entry"}"#, Some("\n"), None), "entry");
    }

    #[test]
    fn reads_a_list_of_templates_and_both_forms_of_special_tokens() {
        let config = r#"{
            "chat_template": [{"name": "tool_use", "template": "t"}, {"name": "default", "template": "d"}],
            "bos_token": {"__type": "AddedToken", "content": "<s>"}, "eos_token": "</s>", "pad_token": null
        }"#;
        let sources = read(config, None, None).expect("a good file");
        let names: Vec<&str> = sources.templates.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["tool_use", "default"]);
        let tokens: Vec<_> =
            sources.special_tokens.iter().map(|(k, v)| (k.as_str(), v.as_str())).collect();
        assert_eq!(tokens, [("bos_token", Some("<s>")), ("eos_token", Some("</s>"))]);
    }

    #[test]
    fn says_which_file_is_wrong() {
        let message = |config| read(config, None, None).expect_err("a bad file").to_string();
        assert!(message("[]").starts_with("tokenizer_config.json cannot be read"));
        assert!(message("{").contains("line 1"));
        assert!(message(r#"{"chat_template": 3}"#).ends_with("found a number"));
        assert!(message(r#"{"chat_template": [{"name": "x"}]}"#).contains("without these entries"));
        assert!(message(r#"{"bos_token": 1}"#).ends_with("found bos_token: a number"));
        assert!(message(r#"{"bos_token": {}}"#).ends_with("found bos_token: null"));
    }
}
