//! Options under the names of their flags, for messages of the library.

use setun::{
    BeamOptions, EngineConfig, EngineError, Error, GenerateOptions,
    text::{OptionError, OptionSpec, TextError},
};

/// The message of an error; an option that it names has the name of its flag.
pub(crate) fn message(error: &Error) -> String {
    let text = error.to_string();
    match error {
        Error::Engine(error) => engine_message(error, text),
        _ => text,
    }
}

/// The same of an option that was refused.
pub(crate) fn option_message(error: &OptionError) -> String {
    let text = error.to_string();
    match error {
        OptionError::Value { option, .. } => with_flag(&text, option),
        OptionError::Unknown { .. } => text,
    }
}

fn engine_message(error: &EngineError, text: String) -> String {
    match error {
        EngineError::Step(error) => engine_message(error, text),
        EngineError::BadOption { option, expected, .. } => {
            let before =
                text.strip_suffix(expected.as_str()).map(|before| with_flag(before, option));
            before.map_or(text, |before| before + &flags_in(expected))
        }
        EngineError::Text(TextError::Option(error)) => option_message(error),
        EngineError::Text(
            TextError::OptionToken { option, .. }
            | TextError::EmptyOption { option, .. }
            | TextError::NeedsState { option },
        ) => with_flag(&text, option),
        _ => text,
    }
}

/// The message with the flag of the option, whose name comes first in it.
fn with_flag(message: &str, option: &str) -> String {
    let flag = flag(option);
    flag.map_or_else(|| message.to_owned(), |flag| message.replacen(option, &flag, 1))
}

/// The flag of an option; none of one without.
fn flag(option: &str) -> Option<String> {
    let flags = specs().find(|spec| spec.name == option)?.flags();
    (!flags.is_empty()).then(|| flags.replace(", ", " or "))
}

/// A text whose options of several words are flags.
fn flags_in(text: &str) -> String {
    let is_word = |character: char| character.is_ascii_alphanumeric() || character == '_';
    let (mut found, mut rest) = (String::new(), text);
    while let Some(start) = rest.find(is_word) {
        let (before, from) = rest.split_at(start);
        let (word, after) = from.split_at(from.find(|one| !is_word(one)).unwrap_or(from.len()));
        found.push_str(before);
        match flag(word).filter(|_| word.contains('_')) {
            Some(flag) => found.push_str(&flag),
            None => found.push_str(word),
        }
        rest = after;
    }
    found + rest
}

fn specs() -> impl Iterator<Item = &'static OptionSpec> {
    GenerateOptions::SPECS.iter().chain(BeamOptions::SPECS).chain(EngineConfig::specs())
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use setun::text::{OptionKind, OptionValue};

    use super::*;

    fn bad(option: &'static str, expected: &str) -> EngineError {
        EngineError::BadOption { option, found: "3".into(), expected: expected.into() }
    }

    #[test]
    fn options_have_the_names_of_their_flags() {
        for (error, expected) in [
            (
                bad("min_tokens", "no more than max_tokens"),
                "option `--min-tokens` is 3, expected no more than --max-tokens",
            ),
            (bad("head_type", "auto"), "option `--head` is 3, expected auto"),
            (
                bad("bad_words", "a model with a tokenizer, or banned_tokens"),
                "option `--bad-words` is 3, expected a model with a tokenizer, or --banned-tokens",
            ),
            (
                bad("queue", "the queue of the engine"),
                "option `queue` is 3, expected the queue of the engine",
            ),
            (
                bad("prompt", "seed_tokens, stop"),
                "option `prompt` is 3, expected seed_tokens, stop",
            ),
            (EngineError::Step(Arc::new(bad("top_k", "1"))), "option `--top-k` is 3, expected 1"),
        ] {
            assert_eq!(message(&error.into()), expected);
        }
        let expected = OptionKind::FINITE;
        let found = OptionValue::Text("top_p".into());
        let error = OptionError::Value { option: "top_p", expected, found };
        assert_eq!(option_message(&error), "option `--top-p` is `top_p`, expected a finite number");
    }
}
