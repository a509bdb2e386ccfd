//! The option table in TypeScript.

use std::fmt::Write as _;

use setun::{
    BeamOptions, EngineOptions, GenerateOptions, SamplingStep,
    text::{NumberRange, OptionGroup, OptionKind, OptionSpec},
};

/// Columns of a formatted line.
const COLUMNS: usize = 110;

const OPTIONS_HEAD: &str = r#"/**
 * Options of a generation and their documentation.
 *
 * Written by `cargo xtask options` from the option table; do not edit.
 */

import type { FilterRule } from "./filter.js";
import type { LogitsProcessorInput } from "./processors.js";
import type { ResponseFormat } from "./response-format.js";
import type { Tool, ToolChoice } from "./tools.js";
import type { ContextStrategy, PromptProgress } from "./wasm.js";

"#;

const RULES_HEAD: &str = r#"/**
 * Checks of the options of a generation.
 *
 * Written by `cargo xtask options` from the option table; do not edit.
 */

import { isContextStrategy } from "./context-strategy.js";
import { isFilterRule } from "./filter.js";
import { type GenerateOptions, SAMPLING_STEPS, type SpeculativeOptions } from "./generate-options.js";
import {
  areTokens,
  arrayOf,
  distinct,
  integer,
  isBoolean,
  isFunction,
  isLogitBias,
  isObject,
  isSeed,
  isSignal,
  isStringOrStrings,
  MAX_FLOAT,
  number,
  oneOf,
  type Rules,
} from "./option-checks.js";
import { isProcessor } from "./processors.js";
import { grammarSource, RESPONSE_FORMATS } from "./response-format.js";
import { isTool, isToolChoice } from "./tools.js";

/** The check of each option. */
export const GENERATE: Rules<GenerateOptions> = {
"#;

/// The object that holds the options whose keys begin with its name.
const NESTED: &str = "speculative.";

const NESTED_INTERFACE: &str =
    "/** Speculative decoding of a generation. The text does not change. */
export interface SpeculativeOptions {
";

const INTERFACE: &str = "/**
 * Options of {@link Model.generate}, {@link Model.generateMany}, {@link Model.chat} and {@link Session.generate}.
 *
 * An unknown name or a value out of range throws `bad-option` before any work.
 */
export interface GenerateOptions {
";

const BEAMS_HEAD: &str = r#"/**
 * Options of a beam search, with their documentation and checks.
 *
 * Written by `cargo xtask options` from the option table; do not edit.
 */

import { integer, MAX_FLOAT, number, oneOf, type Rules } from "./option-checks.js";

/** How a beam search goes on and ends. The names are those of Hugging Face's `generate`. */
export interface BeamOptions {
"#;

const LIMITS_HEAD: &str = r#"/**
 * Limits of an engine, with their documentation and checks.
 *
 * Written by `cargo xtask options` from the option table; do not edit.
 */

import { integer, type Rules } from "./option-checks.js";

/** Limits of an engine. */
export interface EngineLimits {
"#;

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
        r#"'"stop", {type: "truncate_middle", keep, room} or {type: "sliding_window", sinks, window}'"#,
    ),
    (
        "logits_processors",
        "readonly LogitsProcessorInput[]",
        "arrayOf(isProcessor)",
        r#""an array of module URLs or of {module, options?}""#,
    ),
];

/// The file `generate-options.ts`.
pub(crate) fn generate_options() -> String {
    let mut text = OPTIONS_HEAD.to_owned();
    let steps = SamplingStep::ORDER.iter().map(|step| quoted(&camel_case(step.name())));
    text += "/** The sampling steps in their default order. */\n";
    text += &list("SAMPLING_STEPS", steps, "");
    text += "\n/** One of {@link SAMPLING_STEPS}. */\n";
    text += "export type SamplingStep = (typeof SAMPLING_STEPS)[number];\n\n";
    text += NESTED_INTERFACE;
    text += &nested().map(property).collect::<String>();
    text += "}\n\n";
    text += INTERFACE;
    text += &by_group().map(property).collect::<String>();
    text += "  /** Speculative decoding: tokens that are proposed, and verified in one step. */\n";
    text += "  speculative?: SpeculativeOptions;\n";
    text += "  /** Called after each step of the prompt, with how much of it is computed. */\n";
    text += "  onPromptProgress?: (progress: PromptProgress) => void;\n";
    text += "  /** Aborts the generation, as in `fetch`: the iteration rejects with `signal.reason`. */\n";
    text + "  signal?: AbortSignal;\n}\n"
}

/// The file `generate-rules.ts`.
pub(crate) fn generate_rules() -> String {
    let mut text = RULES_HEAD.to_owned();
    text += &by_group().map(rule).collect::<String>();
    text += "  speculative: [isObject, \"an object with lookahead\"],\n";
    text += "  onPromptProgress: [isFunction, \"a function\"],\n";
    text += "  signal: [isSignal, \"an AbortSignal\"],\n};\n\n";
    text += "/** The check of each option of `speculative`. */\n";
    text += "export const SPECULATIVE: Rules<SpeculativeOptions> = {\n";
    text += &nested().map(rule).collect::<String>();
    text += "};\n\n";
    text += "/** The options that a beam search takes, too. */\n";
    let keys = by_group().filter(|spec| spec.in_beams).map(OptionSpec::javascript_key);
    let keys = keys.chain(["signal".to_owned()]).map(|key| quoted(&key));
    text + &list("BEAM_SEARCH_KEYS", keys, " satisfies readonly (keyof GenerateOptions)[]")
}

/// The file `beam-options.ts`.
pub(crate) fn beam_options() -> String {
    let specs: Vec<_> = BeamOptions::SPECS.iter().collect();
    BEAMS_HEAD.to_owned() + &interface_and_rules(&specs, "BEAMS: Rules<BeamOptions>")
}

/// The file `engine-limits.ts`.
pub(crate) fn engine_limits() -> String {
    let specs = EngineOptions::SPECS.iter().filter(|spec| !spec.javascript_key().is_empty());
    let specs: Vec<_> = specs.collect();
    LIMITS_HEAD.to_owned() + &interface_and_rules(&specs, "LIMITS: Rules<EngineLimits>")
}

fn interface_and_rules(specs: &[&OptionSpec], name: &str) -> String {
    let [properties, rules] =
        [property, rule].map(|write| specs.iter().map(|spec| write(spec)).collect::<String>());
    format!(
        "{properties}}}\n\n/** The check of each option. */\nexport const {name} = {{\n{rules}}};\n"
    )
}

fn property(spec: &OptionSpec) -> String {
    format!("{}  {}?: {};\n", comment(spec), own_key(spec), type_of(spec))
}

fn by_group() -> impl Iterator<Item = &'static OptionSpec> {
    in_javascript_order().filter(|spec| !spec.javascript_key().starts_with(NESTED))
}

fn nested() -> impl Iterator<Item = &'static OptionSpec> {
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
fn own_key(spec: &OptionSpec) -> String {
    let key = spec.javascript_key();
    key.strip_prefix(NESTED).map_or(key.clone(), str::to_owned)
}

fn list(name: &str, items: impl Iterator<Item = String>, satisfies: &str) -> String {
    let items = items.fold(String::new(), |items, item| items + "  " + &item + ",\n");
    format!("export const {name} = [\n{items}] as const{satisfies};\n")
}

fn quoted(text: &str) -> String {
    format!("\"{text}\"")
}

fn type_of(spec: &OptionSpec) -> String {
    let name = match spec.kind {
        OptionKind::Choice(names) => {
            let mut types: Vec<_> = choices(names);
            types.retain(|name| name != "false");
            return types.join(" | ").replace("true", "boolean");
        }
        OptionKind::Number(_) | OptionKind::Integer(_) | OptionKind::Time(_) => "number",
        OptionKind::Seed => "number | bigint",
        OptionKind::Flag => "boolean",
        OptionKind::Strings => "string | string[]",
        OptionKind::Tokens => "number[]",
        OptionKind::Biases => "Record<number, number>",
        OptionKind::Steps => "SamplingStep[]",
        _ => structured(spec).1,
    };
    name.to_owned()
}

/// Names as literals, but for flags.
fn choices(names: &[&str]) -> Vec<String> {
    let is_flag = |name: &str| ["true", "false"].contains(&name);
    names.iter().map(|name| if is_flag(name) { (*name).to_owned() } else { quoted(name) }).collect()
}

fn structured(spec: &OptionSpec) -> (&str, &'static str, &'static str, &'static str) {
    let found = STRUCTURED.into_iter().find(|(name, ..)| *name == spec.name);
    found.unwrap_or_else(|| panic!("{} has no type in TypeScript", spec.name))
}

/// The doc comment: paragraphs, values and default.
fn comment(spec: &OptionSpec) -> String {
    let mut paragraphs = spec.paragraphs().into_iter().map(|paragraph| in_javascript(&paragraph));
    let mut summary = paragraphs.next().unwrap_or_default();
    if !matches!(spec.kind, OptionKind::Structured(_) | OptionKind::Flag) {
        let _ = write!(summary, " Takes {}.", words(spec.kind));
    }
    let mut lines = wrapped(&summary);
    for paragraph in paragraphs {
        lines.push(String::new());
        lines.extend(wrapped(&paragraph));
    }
    lines.push(String::new());
    lines.push(format!("@defaultValue {}", spec.default_words()));
    let lines: String =
        lines.iter().map(|line| format!("   * {line}").trim_end().to_owned() + "\n").collect();
    format!("  /**\n{lines}   */\n")
}

/// Names of other options as JavaScript has them.
fn in_javascript(paragraph: &str) -> String {
    let specs = GenerateOptions::SPECS.iter().chain(BeamOptions::SPECS).chain(EngineOptions::SPECS);
    specs.fold(paragraph.to_owned(), |text, spec| {
        text.replace(&format!("`{}`", spec.name), &format!("`{}`", spec.javascript_key()))
    })
}

fn wrapped(text: &str) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split(' ') {
        let line = lines.last_mut().expect("a line");
        if line.is_empty() {
            word.clone_into(line);
        } else if line.chars().count() + word.chars().count() + 6 > COLUMNS {
            lines.push(word.to_owned());
        } else {
            *line += " ";
            *line += word;
        }
    }
    lines
}

fn rule(spec: &OptionSpec) -> String {
    let (check, words) = match spec.kind {
        OptionKind::Number(range) => (number(range, 1.0), quoted(&words(spec.kind))),
        OptionKind::Time(range) => (number(range, 1e3), quoted(&words(spec.kind))),
        OptionKind::Integer(range) => {
            let max =
                if range.max == u64::MAX { String::new() } else { format!(", {}", range.max) };
            (format!("integer({}{max})", range.min), quoted(&words(spec.kind)))
        }
        OptionKind::Choice(names) => {
            (format!("oneOf([{}])", choices(names).join(", ")), quoted(&words(spec.kind)))
        }
        OptionKind::Structured(_) => {
            let (_, _, check, words) = structured(spec);
            (check.to_owned(), words.to_owned())
        }
        OptionKind::Strings => {
            ("isStringOrStrings".to_owned(), quoted("a non-empty string or a list of them"))
        }
        kind => (check(kind).to_owned(), quoted(&words(kind))),
    };
    let key = own_key(spec);
    let line = format!("  {key}: [{check}, {words}],\n");
    if line.chars().count() <= COLUMNS + 1 {
        return line;
    }
    format!("  {key}: [\n    {check},\n    {words},\n  ],\n")
}

fn check(kind: OptionKind) -> &'static str {
    match kind {
        OptionKind::Seed => "isSeed",
        OptionKind::Flag => "isBoolean",
        OptionKind::Tokens => "areTokens",
        OptionKind::Biases => "isLogitBias",
        _ => "distinct(SAMPLING_STEPS)",
    }
}

fn number(range: NumberRange, factor: f64) -> String {
    let [min, max] = [range.min, range.max].map(|end| {
        let end = format!("{:?}", f64::from(end) * factor);
        end.strip_suffix(".0").unwrap_or(&end).to_owned()
    });
    match range {
        NumberRange { or_zero: true, .. } => format!("number({min}, MAX_FLOAT, true)"),
        NumberRange { min: f32::MIN, max: f32::MAX, .. } => "number(-MAX_FLOAT)".to_owned(),
        NumberRange { max: f32::MAX, .. } => format!("number({min})"),
        _ => format!("number({min}, {max})"),
    }
}

/// What is expected, in JavaScript's units.
fn words(kind: OptionKind) -> String {
    match kind {
        OptionKind::Time(range) => range.describe("number of milliseconds", 1e3),
        _ => kind.to_string(),
    }
}

fn camel_case(name: &str) -> String {
    let mut words = name.split('_');
    let first = words.next().unwrap_or_default().to_owned();
    words.fold(first, |key, word| key + &word[..1].to_uppercase() + &word[1..])
}
