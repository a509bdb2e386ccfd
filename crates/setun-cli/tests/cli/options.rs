//! The option table against the command's flags.

use serde_json::Value;
use setun::{
    GenerateOptions,
    text::{OptionKind, OptionSpec},
};

use crate::support::setun;

/// Values at the ends of each range and outside, which `cargo xtask options` writes.
fn cases() -> Vec<Value> {
    let text = include_str!("../../../setun/tests/options/cases.json");
    serde_json::from_str(text).expect("cases")
}

/// The words of a command line for a value.
fn words(value: &Value) -> Vec<String> {
    match value {
        Value::String(text) => vec![text.clone()],
        Value::Array(values) => values.iter().flat_map(words).collect(),
        Value::Object(values) => {
            values.iter().map(|(token, bias)| format!("{token}={bias}")).collect()
        }
        other => vec![other.to_string()],
    }
}

#[test]
fn help_has_every_flag_with_its_range_and_default() {
    let help = ["run", "chat"].map(|command| setun(&[command, "--help"]).text());
    let help = help.join("\n");
    let help = help.split_whitespace().collect::<Vec<_>>().join(" ");
    for spec in GenerateOptions::SPECS {
        for flag in spec.flags().split(", ") {
            assert!(help.contains(flag), "{flag}");
        }
        let has_range = !matches!(spec.kind, OptionKind::Structured(_) | OptionKind::Flag);
        if has_range && !spec.flags().is_empty() {
            let OptionSpec { kind, .. } = spec;
            let words = format!("Takes {kind}. Default: {}.", spec.default_words());
            assert!(help.contains(&words.replace('`', "")), "{}: {words}", spec.name);
        }
    }
}

#[test]
fn flags_refuse_values_outside_their_range_in_the_words_of_the_table() {
    let help = setun(&["run", "--help"]).text();
    for case in cases().iter().filter(|case| case["isFlag"] == false) {
        let (flag, expected) = (case["flags"].as_str(), case["expected"].as_str());
        let (flag, expected) = (flag.expect("a flag"), expected.expect("words"));
        if flag.is_empty() {
            continue; // It is not offered here.
        }
        for value in case["refused"].as_array().expect("values") {
            let given: Vec<_> =
                words(value).into_iter().map(|word| format!("{flag}={word}")).collect();
            let is_of_run = help.contains(&format!("{flag} "));
            let (command, prompt) =
                if is_of_run { ("run", &["Hello"][..]) } else { ("chat", &[][..]) };
            let mut args = vec![command];
            args.extend(given.iter().map(String::as_str));
            args.extend(prompt);
            let outcome = setun(&args);
            assert_eq!(outcome.status, Some(2), "{args:?}: {}", outcome.stderr);
            let is_named = outcome.stderr.contains("topQ"); // of a step: the error has all names
            assert!(is_named || outcome.stderr.contains(expected), "{args:?}: {}", outcome.stderr);
        }
    }
}

#[test]
fn unknown_flags_are_refused_by_name() {
    let outcome = setun(&["run", "--temprature=1", "Hello"]);
    assert_eq!(outcome.status, Some(2));
    assert!(outcome.stderr.contains("--temprature"), "{}", outcome.stderr);
}
