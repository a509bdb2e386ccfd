//! Grammars of arguments in XML, from the schemas of the tools.

use std::fmt::Write as _;

use serde_json::{Map, Value, json};
use setun_text::{PARAMETER, Parameter, Parameters, Tool};

use crate::{GrammarError, lark, open_objects};

/// What all grammars of such arguments have: any text, and a string up to its end.
pub(crate) const RULES: &str =
    "XML_ANY: /(.|\\n)*/\nXML_SOME: /(.|\\n)+/\nxml_text[lazy]: XML_ANY \"\\n</parameter>\\n\"\n";

/// A name of a parameter that is not listed.
const NAME: &str = r"/[A-Za-z0-9_.\-]{1,64}/";

/// The keywords of arguments that calls in XML follow.
const FOLLOWED: [&str; 6] =
    ["type", "properties", "required", "additionalProperties", "$defs", open_objects::KEYWORD];

/// The keywords of strings, which are free up to their end.
const OF_STRINGS: [&str; 3] = ["pattern", "minLength", "maxLength"];

/// A keyword of prepared arguments that calls in XML do not follow, for all of them.
pub(crate) fn refusal(schema: &Value) -> Option<GrammarError> {
    let keyword = schema.as_object()?.keys().find(|name| !FOLLOWED.contains(&name.as_str()))?;
    Some(refused(keyword, "#"))
}

/// Keywords of strings, and of numbers where strings are allowed, too, that are not followed.
pub(crate) fn refusals(tool: &Tool) -> Vec<GrammarError> {
    let Parameters { listed, others } = Parameters::of(tool);
    let all = listed.iter().map(|(name, values)| (format!("#/properties/{name}"), values));
    let all = all.chain([("#/additionalProperties".to_owned(), &others)]);
    all.flat_map(|(place, Parameter { types, bounds, .. })| {
        let is_left = |bound: &&&str| {
            types.has_strings() && (!types.is_text() || OF_STRINGS.contains(*bound))
        };
        bounds.iter().filter(is_left).map(|bound| refused(bound, &place)).collect::<Vec<_>>()
    })
    .collect()
}

fn refused(keyword: &str, place: &str) -> GrammarError {
    let hint = ": the calls of this model are XML, whose strings are free".to_owned();
    GrammarError::Keyword { keyword: keyword.to_owned(), place: place.to_owned(), hint }
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
        let value = if values.types.is_text() {
            match &values.choices {
                Some(choices) => ends(choices),
                None => "xml_text".to_owned(),
            }
        } else if *schema == json!({"type": "boolean"}) {
            ends(&["true", "false", "True", "False"])
        } else if values.types.has_strings() {
            self.either(rule, values, schema)
        } else {
            format!("{} {}", self.json(schema, None), lark::string(PARAMETER[2]))
        };
        let _ = writeln!(self.rules, "{rule}: {head} ({value})");
    }

    /// A string or a value of another type. A string is none of the texts that are read as such a value.
    fn either(&mut self, rule: &str, values: &Parameter, schema: &Value) -> String {
        let end = lark::string(PARAMETER[2]);
        let (mut alternatives, mut others) = (vec![], vec![]);
        let (mut nested, mut begins) = (vec![], String::new());
        for name in values.types.names_without_strings() {
            match name {
                "array" | "object" => {
                    nested.push(name);
                    begins.push_str(if name == "array" { "\\[" } else { "{" });
                }
                name => {
                    let [written, read] = scalar(name);
                    alternatives.push(format!("/{written}\\n<\\/parameter>\\n/"));
                    others.push(read.to_owned());
                }
            }
        }
        if !nested.is_empty() {
            alternatives.push(format!("{} {end}", self.json(schema, Some(&nested))));
            others.push(format!("[{begins}](.|\\n)*"));
        }
        if let Some(choices) = &values.choices {
            alternatives.push(ends(choices));
            return alternatives.join(" | ");
        }
        // A string goes to the first end, as it is read.
        let (terminal, others) = (rule.to_ascii_uppercase(), others.join("|"));
        let text = format!("XML_ANY {end} & ~(XML_ANY {end} XML_SOME) & ~(/({others})/ {end})");
        let _ = writeln!(self.rules, "{terminal}: {text}");
        alternatives.push(terminal);
        alternatives.join(" | ")
    }

    /// A value as JSON; of some types alone.
    fn json(&self, schema: &Value, types: Option<&[&str]>) -> String {
        let has_references = schema.to_string().contains("\"$ref\"");
        let mut whole = match (schema, types) {
            (Value::Object(map), None) => map.clone(),
            (_, None) => Map::new(),
            (_, Some(types)) => {
                Map::from_iter([("allOf".to_owned(), json!([schema, {"type": types}]))])
            }
        };
        for keyword in ["$defs", open_objects::KEYWORD] {
            let is_needed = has_references || keyword != "$defs";
            if let Some(value) = self.root.get(keyword).filter(|_| is_needed) {
                whole.insert(keyword.to_owned(), value.clone());
            }
        }
        format!("%json {}", Value::Object(whole))
    }
}

/// A type of values that are neither strings nor nested: how they are written, and what is read as one.
fn scalar(name: &str) -> [&'static str; 2] {
    const INTEGER: &str = "-?(0|[1-9][0-9]{0,17})";
    match name {
        "null" => ["null", "null|None"],
        "boolean" => ["(true|false)", "true|false|True|False"],
        "integer" => [INTEGER, "-?[0-9]+"],
        _ => [
            r"-?(0|[1-9][0-9]{0,17})(\.[0-9]{1,17})?([eE][\-+]?[0-9]{1,2})?",
            r"-?[0-9]+(\.[0-9]+)?([eE][\-+]?[0-9]+)?",
        ],
    }
}

/// Texts that are listed, each with the end behind.
fn ends(texts: &[impl AsRef<str>]) -> String {
    let ends = texts.iter().map(|text| lark::string(&format!("{}{}", text.as_ref(), PARAMETER[2])));
    ends.collect::<Vec<_>>().join(" | ")
}
