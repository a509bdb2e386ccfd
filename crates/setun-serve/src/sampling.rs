//! Options of a generation by the names that clients use.

use serde::Deserialize;
use serde_json::Value;
use setun::{
    EngineError, GenerateOptions,
    text::{NumberRange, OptionError, OptionKind, OptionSpec, OptionValue},
};

use crate::{error::ApiError, excerpt::excerpt, fields::Fields};

/// Other names of options, as the APIs of `OpenAI`, Anthropic and Ollama, vLLM, llama.cpp and
/// transformers have them.
const OTHER_NAMES: [(&str, &str); 14] = [
    ("allowed_token_ids", "allowed_tokens"),
    ("dry_penalty_last_n", "dry_range"),
    ("dry_sequence_breakers", "dry_breakers"),
    ("dynatemp_exponent", "dynamic_temperature_exponent"),
    ("dynatemp_range", "dynamic_temperature"),
    ("max_completion_tokens", "max_tokens"),
    ("max_output_tokens", "max_tokens"),
    ("n_predict", "max_tokens"),
    ("no_repeat_ngram_size", "no_repeat_ngram"),
    ("num_predict", "max_tokens"),
    ("repeat_penalty", "repetition_penalty"),
    ("samplers", "sampling_order"),
    ("stop_sequences", "stop"),
    ("typical", "typical_p"),
];

/// Options that each codec reads itself, or that change nothing that it writes.
const NOT_READ: [&str; 4] = ["logprobs", "top_logprobs", "prompt_logprobs", "prompt_progress"];

/// The option that limits how long a text gets.
pub(crate) const MAX_TOKENS: &str = "max_tokens";

/// Options that −1 stands for the default of elsewhere: no limit, a random seed.
pub(crate) const DEFAULTS: [&str; 3] = [MAX_TOKENS, "seed", "top_k"];

/// The field of variables for the chat template.
pub(crate) const TEMPLATE_VARIABLES: &str = "chat_template_kwargs";

/// Options of how a conversation becomes tokens.
const OF_TEMPLATES: [&str; 6] = [
    "chat_template_time",
    "enable_thinking",
    "max_thinking_tokens",
    "parse_special",
    "preserve_thinking",
    "reasoning_effort",
];

/// Takes every option of a generation from the fields of a request, which may ask for at most so
/// many tokens.
pub(crate) fn read(
    fields: &mut Fields,
    most_tokens: Option<usize>,
) -> Result<GenerateOptions, ApiError> {
    read_options(fields, specs(), GenerateOptions::new(), most_tokens)
}

/// Takes options of how a conversation becomes tokens, beside messages and tools.
pub(crate) fn read_template(
    fields: &mut Fields,
    options: GenerateOptions,
) -> Result<GenerateOptions, ApiError> {
    read_options(fields, template_specs(), options, None)
}

/// Takes how much a model is to think, where a request has it as `effort`.
pub(crate) fn read_effort(
    fields: &mut Fields,
    options: GenerateOptions,
) -> Result<GenerateOptions, ApiError> {
    let Some(effort) = fields.text("effort")? else { return Ok(options) };
    with_effort(options, &fields.name("effort"), effort)
}

/// Sets how much a model is to think, as a field says.
pub(crate) fn with_effort(
    mut options: GenerateOptions,
    name: &str,
    effort: String,
) -> Result<GenerateOptions, ApiError> {
    let set = options.set("reasoning_effort", &OptionValue::Text(effort));
    set.map_err(|error| refused(name, &error))?;
    Ok(options)
}

fn read_options(
    fields: &mut Fields,
    specs: impl Iterator<Item = &'static OptionSpec>,
    mut options: GenerateOptions,
    most_tokens: Option<usize>,
) -> Result<GenerateOptions, ApiError> {
    for spec in specs {
        let mut given: Option<String> = None;
        for name in names(spec.name) {
            let Some(value) = fields.take(name) else { continue };
            // Clients send the old name of this one beside the new, which holds.
            let may_repeat = spec.name == MAX_TOKENS;
            if let Some(other) = given.replace(name.to_owned()).filter(|_| !may_repeat) {
                return Err(ApiError::invalid(
                    &fields.name(name),
                    format!("given as {other}, too"),
                ));
            }
            let name = fields.name(name);
            if let Some(value) = value_of(spec, &name, value)? {
                options.set(spec.name, &value).map_err(|error| refused(&name, &error))?;
                options.check_list(spec.name).map_err(|error| too_long(&name, &error))?;
                check_tokens(&options, &name, most_tokens)?;
            }
        }
    }
    if let Some(variables) = fields.object(TEMPLATE_VARIABLES)? {
        options = options.chat_template_kwargs(variables.into_map());
    }
    Ok(options)
}

/// The options that requests have by their names in the table.
pub(crate) fn specs() -> impl Iterator<Item = &'static OptionSpec> {
    let is_read = |spec: &&OptionSpec| {
        !matches!(spec.kind, OptionKind::Structured(_)) && !NOT_READ.contains(&spec.name)
    };
    GenerateOptions::SPECS.iter().filter(is_read)
}

/// Those of how a conversation becomes tokens.
pub(crate) fn template_specs() -> impl Iterator<Item = &'static OptionSpec> {
    specs().filter(|spec| OF_TEMPLATES.contains(&spec.name))
}

/// Whether options change logits, which may become infinite by it.
pub(crate) fn changes_logits(options: &GenerateOptions) -> bool {
    options.repetition_penalty.is_some() || !options.logit_bias.is_empty()
}

/// Whether these names are those of a flag.
pub(crate) fn is_flag(names: &[&str]) -> bool {
    names == ["true", "false"]
}

/// The names of an option in a request.
pub(crate) fn names(option: &'static str) -> impl Iterator<Item = &'static str> {
    let others = OTHER_NAMES.iter().filter(move |(_, of)| *of == option);
    std::iter::once(option).chain(others.map(|(name, _)| *name))
}

/// The value of an option; none where it stands for the default.
fn value_of(spec: &OptionSpec, name: &str, value: Value) -> Result<Option<OptionValue>, ApiError> {
    // Ollama's −2 is all that fits the context, which is the default.
    let is = |number: f64| value.as_f64() == Some(number);
    let is_default =
        (is(-1.0) && DEFAULTS.contains(&spec.name)) || (is(-2.0) && spec.name == MAX_TOKENS);
    if is_default {
        return Ok(match spec.name {
            "top_k" => Some(OptionValue::Integer(0)), // all tokens, not the model's own number
            _ => None,
        });
    }
    // One string where several may be given.
    let is_list = matches!(spec.kind, OptionKind::Strings | OptionKind::Steps);
    let value = if is_list && value.is_string() { Value::Array(vec![value]) } else { value };
    let wrong = || ApiError::wrong_type(name, &spec.kind.to_string(), &value);
    let is_flag = matches!(spec.kind, OptionKind::Choice(names) if is_flag(names));
    if is_flag && !value.is_boolean() {
        return Err(wrong());
    }
    check_range(spec, name, &value)?;
    OptionValue::deserialize(&value).map(Some).map_err(|_| wrong())
}

/// Refuses a number beyond a range that it would only be in once it is rounded.
fn check_range(spec: &OptionSpec, name: &str, value: &Value) -> Result<(), ApiError> {
    let (OptionKind::Number(range) | OptionKind::Time(range)) = spec.kind else { return Ok(()) };
    let [min, max] = bounds(range);
    match value.as_f64() {
        Some(number) if number > max || (number < min && number != 0.0) => Err(ApiError::invalid(
            name,
            format!("expected {}, found {}", spec.kind, excerpt(value)),
        )),
        _ => Ok(()),
    }
}

/// Refuses more tokens than a text may have. Each name is checked, as only the last one holds.
fn check_tokens(
    options: &GenerateOptions,
    name: &str,
    most: Option<usize>,
) -> Result<(), ApiError> {
    match (options.max_tokens, most) {
        (Some(found), Some(most)) if found > most => {
            Err(ApiError::invalid(name, format!("expected {most} or less, found {found}")))
        }
        _ => Ok(()),
    }
}

/// The ends of a range as they are written in decimals: 0.1, not the nearest number of 32 bits.
pub(crate) fn bounds(range: NumberRange) -> [f64; 2] {
    [range.min, range.max].map(|end| end.to_string().parse().unwrap_or_else(|_| f64::from(end)))
}

/// The refusal of a list, by the name that the request has for the option.
fn too_long(name: &str, error: &EngineError) -> ApiError {
    match error {
        EngineError::BadOption { found, expected, .. } => {
            ApiError::invalid(name, format!("expected {expected}, found {found}"))
        }
        error => ApiError::of_request(error, name),
    }
}

/// The refusal of a value, by the name that the request has for the option.
fn refused(name: &str, error: &OptionError) -> ApiError {
    match error {
        OptionError::Value { expected, found, .. } => {
            ApiError::invalid(name, format!("expected {expected}, found {}", excerpt(found)))
        }
        OptionError::Unknown { .. } => ApiError::invalid(name, "unknown"),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn options(body: &Value) -> Result<GenerateOptions, ApiError> {
        read(&mut Fields::read(body.to_string().as_bytes())?, None)
    }

    #[test]
    fn options_have_their_own_names_and_the_usual_others() {
        let read = options(&json!({
            "temperature": 1, "top_p": 0.5, "seed": 3, "max_completion_tokens": 7, "stop": "x",
            "repeat_penalty": 1.5, "logit_bias": {"5": -100}, "top_k": -1, "unknown": [1],
            "min_p": null, "chat_template_kwargs": {"enable_thinking": false},
        }));
        let mut expected = GenerateOptions::new().temperature(1.0).top_p(0.5).seed(3);
        expected = expected.max_tokens(7).stop(["x"]).repetition_penalty(1.5).top_k(0);
        expected.logit_bias.insert(5, -100.0);
        let variables = serde_json::from_value(json!({"enable_thinking": false}));
        expected = expected.chat_template_kwargs(variables.expect("an object"));
        assert_eq!(read, Ok(expected));
        let both = options(&json!({"max_completion_tokens": 7, "max_tokens": 3}));
        assert_eq!(both, Ok(GenerateOptions::new().max_tokens(7)));
        let default = options(&json!({"max_tokens": -1, "seed": -1, "stop": []}));
        assert_eq!(default, Ok(GenerateOptions::new()));
    }

    #[test]
    fn refusals_name_the_field_as_it_was_given() {
        for (body, message) in [
            (json!({"temperature": "1"}), "temperature: expected 0, or a finite number of"),
            (json!({"max_completion_tokens": 0}), "max_completion_tokens: expected an integer"),
            (json!({"repeat_penalty": [1, null]}), "repeat_penalty: expected a finite number"),
            (json!({"typical": 1, "typical_p": 1}), "typical: given as typical_p, too"),
            (json!({"stop": [1]}), "stop: expected a list of non-empty strings, found [1]"),
            (
                json!({"stop": vec!["a"; 257]}),
                "stop: expected at most 256 items, found a list of 257",
            ),
            (json!({"stop_sequences": ["a".repeat(1 << 20)]}), "stop_sequences: expected at most"),
            (json!({"dry_sequence_breakers": vec!["a"; 257]}), "dry_sequence_breakers: expected"),
            (
                json!({"bad_words": vec!["a"; 1025]}),
                "bad_words: expected at most 1024 items, found",
            ),
            (json!({"stop_token_ids": vec![1; 1025]}), "stop_token_ids: expected at most 1024"),
            (json!({"chat_template_kwargs": 1}), "chat_template_kwargs: expected an object"),
        ] {
            let error = format!("{:?}", options(&body).expect_err(message));
            assert!(error.contains(message), "{error}");
        }
    }

    #[test]
    fn every_other_name_is_of_an_option() {
        for (name, option) in OTHER_NAMES {
            assert!(GenerateOptions::NAMES.contains(&option), "{option}");
            assert!(!GenerateOptions::NAMES.contains(&name), "{name}");
        }
    }
}
