//! Grammars of arguments in XML, from the schemas of the tools.

use std::fmt::Write as _;

use serde_json::{Map, Value, json};
use setun_text::{PARAMETER, Parameter, Parameters, Tool};

use crate::{GrammarError, lark, open_objects};

/// What all grammars of such arguments have: a string up to its end.
pub(crate) const RULES: &str =
    "xml_text[lazy]: XML_ANY \"\\n</parameter>\\n\"\nXML_ANY: /(.|\\n)*/\n";

/// A name of a parameter that is not listed.
const NAME: &str = r"/[A-Za-z0-9_.\-]{1,64}/";

/// All types but strings.
const OTHERS: [&str; 5] = ["null", "boolean", "number", "array", "object"];

/// The keywords of arguments that calls in XML follow.
const FOLLOWED: [&str; 6] =
    ["type", "properties", "required", "additionalProperties", "$defs", open_objects::KEYWORD];

/// The first keyword of arguments that calls in XML do not follow: one of all of them as they are
/// prepared, or else one of a string.
pub(crate) fn refusal(tool: &Tool, schema: &Value) -> Option<GrammarError> {
    let refused = |keyword: &str, place: String| {
        let hint = ": the calls of this model are XML, whose strings are free".to_owned();
        GrammarError::Keyword { keyword: keyword.to_owned(), place, hint }
    };
    let keywords = schema.as_object().into_iter().flat_map(Map::keys);
    for keyword in keywords {
        if !FOLLOWED.contains(&keyword.as_str()) {
            return Some(refused(keyword, "#".to_owned()));
        }
    }
    for (name, values) in Parameters::of(tool).listed {
        if let Some(bound) = values.bound.filter(|_| values.choices.is_none()) {
            return Some(refused(bound, format!("#/properties/{name}")));
        }
    }
    None
}

/// Whether calls in XML follow none of the arguments, as one keyword of all of them is not followed.
pub(crate) fn is_free(schema: &Value) -> bool {
    !schema.as_object().is_some_and(|all| all.keys().all(|name| FOLLOWED.contains(&name.as_str())))
}

/// Adds the rules of the arguments of a tool, by their schema as the parser takes it.
pub(crate) fn add(rules: &mut String, index: usize, tool: &Tool, schema: &Value) {
    let parameters = Parameters::of(tool);
    let names: Vec<&str> = names(schema).collect();
    let is_required = |name: &str| {
        schema["required"].as_array().is_some_and(|all| all.iter().any(|one| one == name))
    };
    let others = &schema["additionalProperties"];
    let mut arguments = format!("arguments_{index}: \"\"");
    let mut writer = Writer { rules, root: schema };
    for (place, name) in names.iter().enumerate() {
        let rule = format!("parameter_{index}_{place}");
        let mark = if is_required(name) { "" } else { "?" };
        let _ = write!(arguments, " {rule}{mark}");
        let [before, middle, _] = PARAMETER;
        let head = lark::string(&format!("{before}{name}{middle}"));
        let own = schema["properties"].get(*name).unwrap_or(others);
        writer.add(&rule, &head, parameters.of_name(name), own);
    }
    if !matches!(others, Value::Null | Value::Bool(false)) {
        let rule = format!("others_{index}");
        let _ = write!(arguments, " {rule}*");
        let known: Vec<String> = names.iter().map(|name| lark::string(name)).collect();
        let known = match known.as_slice() {
            [] => String::new(),
            known => format!(" & ~({})", known.join(" | ")),
        };
        let _ = writer.rules.write_fmt(format_args!("OTHER_{index}: {NAME}{known}\n"));
        let [before, middle, _] = PARAMETER;
        let head = format!("{} OTHER_{index} {}", lark::string(before), lark::string(middle));
        writer.add(&rule, &head, &parameters.others, others);
    }
    let _ = writeln!(rules, "{arguments}");
}

/// The names of parameters in their order; those that are only required come last.
fn names(schema: &Value) -> impl Iterator<Item = &str> {
    let properties = schema["properties"].as_object();
    let listed = properties.into_iter().flatten();
    let listed = listed.filter(|(_, schema)| **schema != false).map(|(name, _)| name.as_str());
    let required = schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str);
    let is_unlisted = move |name: &&str| !properties.is_some_and(|all| all.contains_key(*name));
    listed.chain(required.filter(is_unlisted))
}

struct Writer<'a> {
    rules: &'a mut String,
    /// The schema of the arguments.
    root: &'a Value,
}

impl Writer<'_> {
    /// Adds the rule of a parameter: its head and its value with the end.
    fn add(&mut self, rule: &str, head: &str, values: &Parameter, schema: &Value) {
        let _ = write!(self.rules, "{rule}: {head} (");
        if values.types.has_strings() && values.choices.is_none() {
            self.rules.push_str("xml_text");
        }
        let mut bar = "";
        for choice in values.choices.iter().flatten() {
            let _ =
                write!(self.rules, "{bar}{}", lark::string(&format!("{choice}{}", PARAMETER[2])));
            bar = " | ";
        }
        if !values.types.is_text() && (!values.types.has_strings() || values.choices.is_some()) {
            let _ = write!(
                self.rules,
                "{bar}{} {}",
                self.json(schema, values),
                lark::string(PARAMETER[2])
            );
        }
        self.rules.push_str(")\n");
    }

    /// A value as JSON that is no string.
    fn json(&self, schema: &Value, values: &Parameter) -> String {
        let mut whole = json!({"allOf": [schema]});
        if values.types.has_strings() {
            whole["allOf"] = json!([schema, {"type": OTHERS}]);
        }
        for keyword in ["$defs", open_objects::KEYWORD] {
            whole[keyword] = self.root[keyword].clone();
        }
        format!("%json {whole}")
    }
}
