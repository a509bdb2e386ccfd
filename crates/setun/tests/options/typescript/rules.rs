//! Checks of options in TypeScript.

use setun::text::{NumberRange, OptionKind, OptionSpec};

use super::names::{COLUMNS, by_group, choices, list, nested, own_key, quoted, structured, words};

const RULES_HEAD: &str = r#"/**
 * Checks of the options of a generation.
 *
 * Written by `cargo xtask options` from the option table; do not edit.
 */

import { isContextStrategy } from "./context-strategy.js";
import { isFilterRule } from "./filter.js";
import type { GenerateOptions, SpeculativeOptions } from "./generate-options.js";
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
  isText,
  MAX_FLOAT,
  number,
  oneOf,
  type Rules,
} from "./option-checks.js";
import { isProcessor } from "./processors.js";
import { grammarSource, RESPONSE_FORMATS } from "./response-format.js";
import { SAMPLING_STEPS } from "./sampling-options.js";
import { isTool, isToolChoice } from "./tools.js";

/** The check of each option. */
export const GENERATE: Rules<GenerateOptions> = {
"#;

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

pub(super) fn rule(spec: &OptionSpec) -> String {
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
        OptionKind::Text => "isText",
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
