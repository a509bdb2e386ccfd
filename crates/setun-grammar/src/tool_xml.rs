//! Grammars of arguments in XML, from the schemas of the tools.

use std::fmt::Write as _;

use serde_json::{Map, Value};
use setun_text::{PARAMETER, Parameter, Tool};

use crate::{GrammarError, lark, open_objects};

/// What all grammars of such arguments have: a string up to its end.
pub(crate) const RULES: &str =
    "xml_text[lazy]: XML_ANY \"\\n</parameter>\\n\"\nXML_ANY: /(.|\\n)*/\n";

/// A name of a parameter that is not listed.
const NAME: &str = r"/[A-Za-z0-9_.\-]{1,64}/";

/// All types but strings, as a part of a schema.
const OTHERS: &str = r#",{"type":["null","boolean","number","array","object"]}"#;

/// The keywords of arguments that calls in XML follow.
const FOLLOWED: [&str; 6] =
    ["type", "properties", "required", "additionalProperties", "$defs", open_objects::KEYWORD];

/// The first keyword that calls in XML do not follow: one of all arguments as they are prepared, so
/// that all are free, or else one of a string.
pub(crate) fn refusal(tool: &Tool, schema: &Value) -> Option<(bool, GrammarError)> {
    let refused = |keyword: &str, place: String| {
        let hint = ": the calls of this model are XML, whose strings are free".to_owned();
        GrammarError::Keyword { keyword: keyword.to_owned(), place, hint }
    };
    for keyword in schema.as_object()?.keys() {
        if !FOLLOWED.contains(&keyword.as_str()) {
            return Some((true, refused(keyword, "#".to_owned())));
        }
    }
    for name in schema["properties"].as_object()?.keys() {
        let values = values(tool, name);
        if let Some(bound) = values.bound.filter(|_| values.choices.is_none()) {
            return Some((false, refused(bound, format!("#/properties/{name}"))));
        }
    }
    None
}

/// Adds the rules of the arguments of a tool, by their schema as the parser takes it.
pub(crate) fn add(rules: &mut String, index: usize, tool: &Tool, schema: &Value) {
    let [before, middle, _] = PARAMETER.map(lark::string);
    let (mut arguments, mut known) = (String::new(), String::new());
    let others = &schema["additionalProperties"];
    let required = schema["required"].as_array().map_or(&[][..], Vec::as_slice);
    let none = Map::new();
    let listed = schema["properties"].as_object().unwrap_or(&none);
    let unlisted = required.iter().filter_map(Value::as_str);
    let unlisted = unlisted.filter(|name| !listed.contains_key(*name)).map(|name| (name, others));
    let listed = listed.iter().map(|(name, own)| (name.as_str(), own));
    for (place, (name, own)) in listed.chain(unlisted).enumerate() {
        if matches!(own, Value::Bool(false)) {
            continue;
        }
        let mark = if required.iter().any(|one| one == name) { "" } else { "?" };
        let (rule, name_text) = (format!("parameter_{index}_{place}"), lark::string(name));
        let _ = write!(arguments, " {rule}{mark}");
        let _ = write!(known, "{}{name_text}", if known.is_empty() { "" } else { " | " });
        let head = format!("{}{name}{}", PARAMETER[0], PARAMETER[1]);
        let _ = write!(rules, "{rule}: {} ", lark::string(&head));
        add_value(rules, &values(tool, name), own, schema);
    }
    if !matches!(others, Value::Null | Value::Bool(false)) {
        let _ = write!(arguments, " others_{index}*");
        let known = if known.is_empty() { known } else { format!(" & ~({known})") };
        let _ = write!(
            rules,
            "OTHER_{index}: {NAME}{known}\nothers_{index}: {before} OTHER_{index} {middle} "
        );
        add_value(rules, &values(tool, ""), others, schema);
    }
    let _ = writeln!(rules, "arguments_{index}: \"\"{arguments}");
}

/// The values of a parameter by the schema of the tool.
fn values(tool: &Tool, name: &str) -> Parameter {
    tool.parameters.as_ref().map(|root| Parameter::named(name, root)).unwrap_or_default()
}

/// Adds a value with its end. `root` is the schema of all arguments.
fn add_value(rules: &mut String, values: &Parameter, schema: &Value, root: &Value) {
    let types = values.types;
    let mut bar = '(';
    for choice in values.choices.iter().flatten() {
        let _ = write!(rules, "{bar}{}", lark::string(&format!("{choice}{}", PARAMETER[2])));
        bar = '|';
    }
    if types.has_strings() && values.choices.is_none() {
        rules.push_str("(xml_text");
    } else if !types.is_text() {
        let (others, end) =
            (if types.has_strings() { OTHERS } else { "" }, lark::string(PARAMETER[2]));
        let [definitions, options] = ["$defs", open_objects::KEYWORD].map(|name| &root[name]);
        let _ = write!(
            rules,
            "{bar}%json {{\"allOf\":[{schema}{others}],\"$defs\":{definitions},\"{}\":{options}}} {end}",
            open_objects::KEYWORD
        );
    }
    rules.push_str(")\n");
}
