//! Options of a generation in the description, from the table of options.

use serde_json::json;
use setun::{
    SamplingStep,
    text::{NumberRange, OptionKind, OptionSpec},
};

use super::schema::{
    AnySchema, any_of, distinct, flag, integer, list, map, number_within, object, one_of, text,
    text_from, tokens, values,
};
use crate::{limits::Limits, sampling};

/// Ids of tokens as names of fields.
const TOKEN_ID: &str = "^[0-9]{1,9}$";

/// Name, schema and description.
type DescribedOption = (&'static str, AnySchema, String);

/// The options that every request for a text takes, by all their names.
pub(crate) fn options(limits: &Limits) -> Vec<DescribedOption> {
    described(sampling::specs(), limits)
}

/// Those of how a conversation becomes tokens.
pub(crate) fn template_options(limits: &Limits) -> Vec<DescribedOption> {
    described(sampling::template_specs(), limits)
}

fn described(
    specs: impl Iterator<Item = &'static OptionSpec>,
    limits: &Limits,
) -> Vec<DescribedOption> {
    let rows = specs.flat_map(|spec| {
        sampling::names(spec.name)
            .map(move |name| (name, schema(spec, limits), description(spec, name)))
    });
    let variables = "More variables of the chat template, such as `enable_thinking`.".to_owned();
    rows.chain([(sampling::TEMPLATE_VARIABLES, object(), variables)]).collect()
}

/// The values of the option that limits how long a text gets.
pub(crate) fn max_tokens(limits: &Limits) -> AnySchema {
    let most = limits.output_tokens.map(|most| most as u64);
    any_of([integer(1, most), values([json!(-1), json!(-2)])])
}

fn description(spec: &OptionSpec, name: &str) -> String {
    if name != spec.name {
        return format!("Another name of `{}`.", spec.name);
    }
    let summary = spec.paragraphs().into_iter().next().unwrap_or_default();
    format!("{summary} Takes {}. Default: {}.", spec.kind, spec.default_words())
}

fn schema(spec: &OptionSpec, limits: &Limits) -> AnySchema {
    if spec.name == sampling::MAX_TOKENS {
        return max_tokens(limits);
    }
    let has_default = sampling::DEFAULTS.contains(&spec.name); // as −1
    match spec.kind {
        OptionKind::Number(range) | OptionKind::Time(range) => number(range),
        OptionKind::Integer(range) => {
            let least = if has_default { range.min.min(-1) } else { range.min };
            integer(least, Some(range.max).filter(|most| *most < u64::MAX))
        }
        OptionKind::Seed => integer(-1, Some(u64::MAX)),
        OptionKind::Flag => flag(),
        OptionKind::Choice(names) if sampling::is_flag(names) => flag(),
        OptionKind::Choice(names) => one_of(names),
        OptionKind::Strings => any_of([text_from(1), list(text_from(1))]),
        OptionKind::Tokens => tokens(),
        OptionKind::Biases => map(Some(TOKEN_ID), number_within(f32::MIN.into(), f32::MAX.into())),
        OptionKind::Steps => {
            let names: Vec<_> = SamplingStep::ORDER.iter().map(|step| step.name()).collect();
            any_of([one_of(&names), distinct(one_of(&names))])
        }
        OptionKind::Text => text_from(1),
        _ => text(),
    }
}

fn number(range: NumberRange) -> AnySchema {
    let [min, max] = sampling::bounds(range);
    let within = number_within(min, max);
    if range.or_zero { any_of([within, values([json!(0)])]) } else { within }
}
