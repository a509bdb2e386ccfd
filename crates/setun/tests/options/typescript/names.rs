//! Names, types and words of options in TypeScript.

use setun::{
    GenerateOptions,
    text::{OptionGroup, OptionKind, OptionSpec},
};

/// Columns of a formatted line.
pub(super) const COLUMNS: usize = 110;

/// The object that holds the options whose keys begin with its name.
const NESTED: &str = "speculative.";

/// A structured option: its name, type, check and words.
const STRUCTURED: [(&str, &str, &str, &str); 7] = [
    ("chat_template_kwargs", "Record<string, unknown>", "isObject", r#""an object of variables""#),
    (
        "tools",
        "readonly Tool[]",
        "arrayOf(isTool)",
        r#"'an array of {type: "function", function: {name, description?, parameters?, strict?}}'"#,
    ),
    (
        "tool_choice",
        "ToolChoice",
        "isToolChoice",
        r#"'"auto", "none", "required" or {type: "function", function: {name}}'"#,
    ),
    (
        "constraint",
        "ResponseFormat",
        "(value) => grammarSource(value) !== undefined",
        "RESPONSE_FORMATS",
    ),
    (
        "filter",
        "FilterRule[]",
        "arrayOf(isFilterRule)",
        r#""an array of {word, wholeWord?, ignoreCase?} or {regex} with either replace or stop: true""#,
    ),
    (
        "context_overflow",
        "ContextStrategy",
        "isContextStrategy",
        r#"'"stop", "truncate_middle", "sliding_window", {type: "truncate_middle", keep, room} or {type: "sliding_window", sinks, window}'"#,
    ),
    (
        "logits_processors",
        "readonly LogitsProcessorInput[]",
        "arrayOf(isProcessor)",
        r#""an array of module URLs or of {module, options?}""#,
    ),
];

pub(super) fn by_group() -> impl Iterator<Item = &'static OptionSpec> {
    in_javascript_order().filter(|spec| !spec.javascript_key().starts_with(NESTED))
}

pub(super) fn nested() -> impl Iterator<Item = &'static OptionSpec> {
    in_javascript_order().filter(|spec| spec.javascript_key().starts_with(NESTED))
}

fn in_javascript_order() -> impl Iterator<Item = &'static OptionSpec> {
    let of_group = |group| {
        GenerateOptions::SPECS
            .iter()
            .filter(move |spec| spec.group == group && !spec.javascript_key().is_empty())
    };
    OptionGroup::ALL.into_iter().flat_map(of_group)
}

/// The key within the object that holds the option.
pub(super) fn own_key(spec: &OptionSpec) -> String {
    let key = spec.javascript_key();
    key.strip_prefix(NESTED).map_or(key.clone(), str::to_owned)
}

pub(super) fn list(name: &str, items: impl Iterator<Item = String>, satisfies: &str) -> String {
    let items = items.fold(String::new(), |items, item| items + "  " + &item + ",\n");
    format!("export const {name} = [\n{items}] as const{satisfies};\n")
}

pub(super) fn quoted(text: &str) -> String {
    format!("\"{text}\"")
}

/// The names as TypeScript literals: flags and numbers stay bare, other names are quoted.
pub(super) fn choices(names: &[&str]) -> Vec<String> {
    let is_value = |name: &str| serde_json::from_str::<serde_json::Value>(name).is_ok();
    let literal = |name: &&str| if is_value(name) { (*name).to_owned() } else { quoted(name) };
    names.iter().map(literal).collect()
}

pub(super) fn structured(spec: &OptionSpec) -> (&str, &'static str, &'static str, &'static str) {
    let found = STRUCTURED.into_iter().find(|(name, ..)| *name == spec.name);
    found.unwrap_or_else(|| panic!("{} has no type in TypeScript", spec.name))
}

/// What is expected, in JavaScript's units.
pub(super) fn words(kind: OptionKind) -> String {
    match kind {
        OptionKind::Time(range) => range.describe("number of milliseconds", 1e3),
        _ => kind.to_string(),
    }
}
