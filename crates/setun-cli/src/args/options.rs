//! Options of a generation, as flags made from the engine's table.

use clap::{
    Arg, ArgAction, ArgMatches, Args, Command, Error, FromArgMatches,
    builder::{TypedValueParser, ValueParser},
    error::ErrorKind,
};
use setun::{
    EngineConfig, GenerateOptions,
    text::{
        FieldValue, OptionError, OptionGroup, OptionKind, OptionSpec, OptionValue, SamplingStep,
    },
};

use crate::flags;

/// The options that take a value or nothing, of a conversation or of one prompt. Structured ones
/// have arguments of their own.
#[derive(Clone, Debug)]
pub(crate) struct OptionArgs<const CHAT: bool>(GenerateOptions);

impl<const CHAT: bool> OptionArgs<CHAT> {
    /// The options as given.
    pub(super) fn options(&self) -> GenerateOptions {
        self.0.clone()
    }
}

/// What only events report, which a conversation does not print.
const REPORTED: [&str; 4] = ["logprobs", "top_logprobs", "prompt_logprobs", "prompt_progress"];

/// How messages are read.
const OF_MESSAGES: [&str; 7] = [
    "parse_special",
    "chat_template_time",
    "enable_thinking",
    "reasoning_effort",
    "max_thinking_tokens",
    "preserve_thinking",
    CONTINUES,
];

/// What a conversation needs that ends with an answer: lines are a user's.
const CONTINUES: &str = "continue_final_message";

impl<const CHAT: bool> Args for OptionArgs<CHAT> {
    fn augment_args(command: Command) -> Command {
        let of_group = |group| offered(CHAT).filter(move |spec| spec.group == group);
        let specs = OptionGroup::ALL.into_iter().flat_map(of_group);
        let arguments = specs.map(|spec| {
            let is_in_events = REPORTED.contains(&spec.name) && spec.name != "prompt_logprobs";
            let argument = argument(spec);
            match spec.name {
                _ if is_in_events => argument.requires("json"),
                CONTINUES => argument.requires("messages"),
                _ => argument,
            }
        });
        arguments.fold(command, Command::arg)
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl<const CHAT: bool> FromArgMatches for OptionArgs<CHAT> {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, Error> {
        let mut options = Self(GenerateOptions::new());
        options.update_from_arg_matches(matches)?;
        Ok(options)
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), Error> {
        for spec in offered(CHAT) {
            if let Some(value) = given(spec, matches) {
                self.0.set(spec.name, &value).map_err(|error| refused(&error))?;
            }
        }
        Ok(())
    }
}

/// The options that are flags, of a conversation or of one prompt.
fn offered(chat: bool) -> impl Iterator<Item = &'static OptionSpec> {
    let is_offered = move |spec: &&OptionSpec| match spec.name {
        name if OF_MESSAGES.contains(&name) => chat,
        name => !(chat && REPORTED.contains(&name)),
    };
    let is_flag = |spec: &&OptionSpec| {
        !matches!(spec.kind, OptionKind::Structured(_)) && !spec.flags().is_empty()
    };
    GenerateOptions::SPECS.iter().filter(is_flag).filter(is_offered)
}

/// The flags of one prompt that a beam search does not take.
pub(super) fn not_in_beams() -> impl Iterator<Item = &'static str> {
    offered(false).filter(|spec| !spec.in_beams).map(|spec| spec.name)
}

/// An option that was refused.
pub(super) fn refused(error: &OptionError) -> Error {
    Error::raw(ErrorKind::ValueValidation, flags::option_message(error))
}

/// The help of an option of an engine or its device.
pub(crate) fn help(name: &str) -> String {
    EngineConfig::specs().find(|spec| spec.name == name).map(summary).unwrap_or_default()
}

/// Reads the value of an option of an engine or its device.
pub(crate) fn value<T: FieldValue>(
    name: &'static str,
) -> impl Fn(&str) -> Result<T, String> + Clone + Send + Sync + 'static {
    move |text| {
        let kind = EngineConfig::specs().find(|spec| spec.name == name).map(|spec| spec.kind);
        let kind = kind.ok_or_else(|| format!("there is no option `{name}`"))?;
        let value = read(kind, text)?;
        let value = T::read(&value).filter(|_| kind.accepts(&value));
        value.ok_or_else(|| format!("expected {kind}"))
    }
}

/// What an option does, what it takes and its default.
fn summary(spec: &OptionSpec) -> String {
    let summary = spec.paragraphs().into_iter().next().unwrap_or_default();
    let summary = summary.trim_end_matches('.');
    if spec.kind == OptionKind::Flag {
        return summary.to_owned();
    }
    format!("{summary} [{}; default: {}]", spec.kind, spec.default_words())
}

/// The flag of an option.
pub(super) fn argument(spec: &'static OptionSpec) -> Arg {
    let flag = spec.flags();
    let argument = Arg::new(spec.name)
        .long(flag.trim_start_matches("--").to_owned())
        .help_heading(spec.group.title())
        .help(summary(spec));
    if spec.kind == OptionKind::Flag {
        return argument.action(ArgAction::SetTrue);
    }
    let (default, kind) = (spec.default_words(), spec.kind);
    let long = spec.paragraphs().join("\n\n") + &format!("\n\nTakes {kind}. Default: {default}.");
    argument
        .value_name(spec.value_name)
        .long_help(long)
        .allow_hyphen_values(true)
        .action(if is_list(kind) { ArgAction::Append } else { ArgAction::Set })
        .value_delimiter(matches!(kind, OptionKind::Tokens | OptionKind::Steps).then_some(','))
        .value_parser(parser(kind))
}

fn is_list(kind: OptionKind) -> bool {
    use OptionKind as Kind;
    matches!(kind, Kind::Strings | Kind::Tokens | Kind::Biases | Kind::Steps)
}

/// Reads a value, or one of a list, and checks it.
fn parser(kind: OptionKind) -> ValueParser {
    let parse = move |text: String| {
        let value = read(kind, &text)?;
        let whole = if is_list(kind) { joined(kind, vec![value.clone()]) } else { value.clone() };
        if kind.accepts(&whole) { Ok(value) } else { Err(format!("expected {kind}")) }
    };
    clap::builder::StringValueParser::new().try_map(parse).into()
}

fn read(kind: OptionKind, text: &str) -> Result<OptionValue, String> {
    let number = |text: &str| text.parse().ok().map(OptionValue::Number);
    let value = match kind {
        OptionKind::Number(_) | OptionKind::Time(_) => number(text),
        OptionKind::Integer(_) | OptionKind::Seed | OptionKind::Tokens => {
            text.parse().ok().map(OptionValue::Integer)
        }
        OptionKind::Biases => text.split_once('=').and_then(|(token, bias)| {
            Some(OptionValue::Map(vec![(token.to_owned(), number(bias)?)]))
        }),
        OptionKind::Steps => {
            let step = text.parse::<SamplingStep>().map_err(|error| error.to_string())?;
            Some(OptionValue::Text(step.name().to_owned()))
        }
        OptionKind::Choice(["true", "false"]) => text.parse().ok().map(OptionValue::Flag),
        _ => Some(OptionValue::Text(text.to_owned())),
    };
    value.ok_or_else(|| format!("expected {kind}"))
}

/// The values of a list as one.
fn joined(kind: OptionKind, values: Vec<OptionValue>) -> OptionValue {
    if kind != OptionKind::Biases {
        return OptionValue::List(values);
    }
    let entries = values.into_iter().flat_map(|value| match value {
        OptionValue::Map(entries) => entries,
        _ => vec![],
    });
    OptionValue::Map(entries.collect())
}

/// The value of an option, if it is given.
pub(super) fn given(spec: &OptionSpec, matches: &ArgMatches) -> Option<OptionValue> {
    if spec.kind == OptionKind::Flag {
        return matches.get_flag(spec.name).then_some(OptionValue::Flag(true));
    }
    let mut values: Vec<OptionValue> = matches.get_many(spec.name)?.cloned().collect();
    if is_list(spec.kind) { Some(joined(spec.kind, values)) } else { values.pop() }
}
