//! The option table in TypeScript.

mod names;
mod rules;

use std::fmt::Write as _;

use setun::{
    BeamOptions, EngineConfig, EngineOptions, GenerateOptions, SamplingStep,
    text::{OptionGroup, OptionKind, OptionSpec},
};

pub(crate) use rules::generate_rules;

use names::{COLUMNS, by_group, choices, list, nested, own_key, quoted, structured, words};
use rules::rule;

const OPTIONS_HEAD: &str = r#"/**
 * Options of a generation and their documentation.
 *
 * Written by `cargo xtask options` from the option table; do not edit.
 */

import type { FilterRule } from "./filter.js";
import type { PenaltyOptions } from "./penalty-options.js";
import type { ResponseFormat } from "./response-format.js";
import type { SamplingOptions } from "./sampling-options.js";
import type { Tool, ToolChoice } from "./tools.js";
import type { ContextStrategy, PromptProgress } from "./wasm.js";

"#;

const NESTED_INTERFACE: &str =
    "/** Speculative decoding of a generation. The text does not change. */
export interface SpeculativeOptions {
";

const INTERFACE: &str = "/**
 * Options of {@link Model.generate}, {@link Model.generateMany}, {@link Model.chat} and {@link Session.generate}.
 *
 * An unknown name or a value out of range throws `bad-option` before any work.
 */
export interface GenerateOptions extends SamplingOptions, PenaltyOptions {
";

const SAMPLING_HEAD: &str = r#"/**
 * Options of sampling and their documentation.
 *
 * Written by `cargo xtask options` from the option table; do not edit.
 */

import type { LogitsProcessorInput } from "./processors.js";

"#;

const SAMPLING_INTERFACE: &str = "/** How the next token is chosen from the logits. */
export interface SamplingOptions {
";

const PENALTIES_HEAD: &str = r"/**
 * Options that change the logits of single tokens, and their documentation.
 *
 * Written by `cargo xtask options` from the option table; do not edit.
 */

/** What changes the logits of single tokens: penalties, biases and bans. */
export interface PenaltyOptions {
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
 * Limits and arithmetic of an engine, with their documentation and checks.
 *
 * Written by `cargo xtask options` from the option table; do not edit.
 */

import { integer, oneOf, type Rules } from "./option-checks.js";

/** Limits of an engine, and how it computes. */
export interface EngineLimits {
"#;

/// Options with a file of their own.
const SAMPLING: [OptionGroup; 2] = [OptionGroup::Sampling, OptionGroup::MoreSampling];
const PENALTIES: [OptionGroup; 1] = [OptionGroup::Penalties];

/// The file `generate-options.ts`.
pub(crate) fn generate_options() -> String {
    let is_elsewhere = |group: &OptionGroup| SAMPLING.contains(group) || PENALTIES.contains(group);
    let mut text = OPTIONS_HEAD.to_owned();
    text += NESTED_INTERFACE;
    text += &nested().map(property).collect::<String>();
    text += "}\n\n";
    text += INTERFACE;
    text += &properties_of(|group| !is_elsewhere(group));
    text += "  /** Speculative decoding: tokens that are proposed, and verified in one step. */\n";
    text += "  speculative?: SpeculativeOptions;\n";
    text += "  /** Called after each step of the prompt, with how much of it is computed. */\n";
    text += "  onPromptProgress?: (progress: PromptProgress) => void;\n";
    text += "  /** Aborts the generation, as in `fetch`: the iteration rejects with `signal.reason`. */\n";
    text + "  signal?: AbortSignal;\n}\n"
}

/// The file `sampling-options.ts`.
pub(crate) fn sampling_options() -> String {
    let mut text = SAMPLING_HEAD.to_owned();
    let steps = SamplingStep::ORDER.iter().map(|step| quoted(&camel_case(step.name())));
    text += "/** The sampling steps in their default order. */\n";
    text += &list("SAMPLING_STEPS", steps, "");
    text += "\n/** One of {@link SAMPLING_STEPS}. */\n";
    text += "export type SamplingStep = (typeof SAMPLING_STEPS)[number];\n\n";
    text += SAMPLING_INTERFACE;
    text + &properties_of(|group| SAMPLING.contains(group)) + "}\n"
}

/// The file `penalty-options.ts`.
pub(crate) fn penalty_options() -> String {
    PENALTIES_HEAD.to_owned() + &properties_of(|group| PENALTIES.contains(group)) + "}\n"
}

/// The file `beam-options.ts`.
pub(crate) fn beam_options() -> String {
    let specs: Vec<_> = BeamOptions::SPECS.iter().collect();
    BEAMS_HEAD.to_owned() + &interface_and_rules(&specs, "BEAMS: Rules<BeamOptions>")
}

/// The file `engine-limits.ts`.
pub(crate) fn engine_limits() -> String {
    let is_here =
        |spec: &&OptionSpec| spec.group != OptionGroup::Device && !spec.javascript_key().is_empty();
    let specs = EngineConfig::specs().filter(is_here);
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

/// The options of some groups.
fn properties_of(is_there: impl Fn(&OptionGroup) -> bool) -> String {
    by_group().filter(|spec| is_there(&spec.group)).map(property).collect()
}

fn property(spec: &OptionSpec) -> String {
    format!("{}  {}?: {};\n", comment(spec), own_key(spec), type_of(spec))
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
        OptionKind::Text => "string",
        OptionKind::Strings => "string | string[]",
        OptionKind::Tokens => "number[]",
        OptionKind::Biases => "Record<number, number>",
        OptionKind::Steps => "SamplingStep[]",
        _ => structured(spec).1,
    };
    name.to_owned()
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

fn camel_case(name: &str) -> String {
    let mut words = name.split('_');
    let first = words.next().unwrap_or_default().to_owned();
    words.fold(first, |key, word| key + &word[..1].to_uppercase() + &word[1..])
}
