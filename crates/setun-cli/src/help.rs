//! Help of the commands: groups in the order of use, `-h` with the common options alone.

use clap::{Arg, Command};

/// Options of `setun run` and `setun chat` that `-h` shows, in the order of use.
const COMMON: [&str; 19] = [
    "model",
    "messages",
    "system",
    "tools",
    "enable_thinking",
    "max_tokens",
    "stop",
    "temperature",
    "top_k",
    "top_p",
    "repetition_penalty",
    "seed",
    "n",
    "json_schema",
    "regex",
    "json",
    "backend",
    "threads",
    "verbose",
];

/// Titles of the groups of options in the order of use, and the options that come first in each, by
/// name. Other options of a group follow in the order of their definition.
const GROUPS: [(&str, &[&str]); 15] = [
    (
        "Model and device",
        &["model", "backend", "threads", "draft", "config", "context_overflow", "verify"],
    ),
    ("Conversation", &["messages", "system", "chat_template_kwargs"]),
    ("Tools", &[]),
    ("Prompt", &[]),
    ("Length", &["max_tokens", "stop"]),
    ("Sampling", &["temperature", "top_k", "top_p", "min_p", "repetition_penalty", "seed", "n"]),
    ("Structured output", &["json_schema", "json_object", "regex"]),
    ("Output", &["json", "verbose"]),
    ("Prompt template", &[]),
    ("Penalties, biases and bans", &[]),
    ("More sampling methods", &[]),
    ("Beam search", &[]),
    ("Content filters", &[]),
    ("Scheduling", &[]),
    (
        "Memory and measurement",
        &[
            "kv",
            "head",
            "activation_group",
            "weight_image",
            "i2s_interleave",
            "pre",
            "profile",
            "trace",
            "force",
        ],
    ),
];

/// Arranges the help of `setun run` and `setun chat`.
pub(crate) fn arranged(command: Command) -> Command {
    const RUN: &str = "Examples:
  setun run \"Once upon a time\"
  setun run --model bitnet-2b-4t --max-tokens 100 --temperature 0.7 \"The Setun was\"";
    const CHAT: &str = "Examples:
  setun chat --model bitnet-2b-4t
  setun chat --model bitnet-2b-4t --system \"Answer in one sentence.\" --temperature 0.7";
    command.mut_subcommands(|subcommand| match subcommand.get_name() {
        "run" => in_groups(&subcommand).after_help(RUN).display_order(0),
        "chat" => in_groups(&subcommand).after_help(CHAT).display_order(1),
        _ => subcommand,
    })
}

/// The command with its arguments in the order of their groups. Help has groups in the order of their
/// first arguments.
fn in_groups(command: &Command) -> Command {
    let mut arguments: Vec<Arg> = command.get_arguments().cloned().map(grouped).collect();
    arguments.sort_by_key(place);
    let in_order = |(order, argument): (usize, Arg)| argument.display_order(order);
    let mut arranged = Command::new(command.get_name().to_owned())
        .groups(command.get_groups().cloned())
        .args(arguments.into_iter().enumerate().map(in_order));
    if let Some(about) = command.get_about() {
        arranged = arranged.about(about.clone());
    }
    match command.get_long_about() {
        Some(about) => arranged.long_about(about.clone()),
        None => arranged,
    }
}

fn grouped(argument: Arg) -> Arg {
    let name = argument.get_id().as_str();
    let is_hidden = !argument.is_positional() && !COMMON.contains(&name);
    let heading = GROUPS.iter().find(|(_, names)| names.contains(&name));
    let argument = match heading {
        Some((heading, _)) => argument.help_heading(*heading),
        None => argument,
    };
    argument.hide_short_help(is_hidden)
}

/// The group of an argument, and its place there.
fn place(argument: &Arg) -> (usize, usize) {
    let heading = argument.get_help_heading().unwrap_or_default();
    let Some(group) = GROUPS.iter().position(|(group, _)| *group == heading) else {
        return (0, 0); // a positional one
    };
    let names = GROUPS[group].1;
    let name = argument.get_id().as_str();
    let place = names.iter().position(|known| *known == name).unwrap_or(names.len());
    (group + 1, place)
}

/// Takes the marks of code out of a command's help: texts of the options are also comments, in which
/// code is marked, and a terminal has no use for it.
pub(crate) fn without_marks(command: Command) -> Command {
    let plain = |text: &clap::builder::StyledStr| text.to_string().replace('`', "");
    let about = command.get_about().map(plain);
    let long_about = command.get_long_about().map(plain);
    let command = match (about, long_about) {
        (Some(about), Some(long)) => command.about(about).long_about(long),
        (Some(about), None) => command.about(about),
        _ => command,
    };
    let of_argument = |argument: Arg| {
        let help = argument.get_help().map(plain);
        let long = argument.get_long_help().map(plain);
        let argument = help.into_iter().fold(argument, Arg::help);
        long.into_iter().fold(argument, Arg::long_help)
    };
    command.mut_args(of_argument).mut_subcommands(without_marks)
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;
    use crate::commands::Setun;

    #[test]
    fn all_options_of_a_generation_have_a_group() {
        let setun = arranged(Setun::command());
        for name in ["run", "chat"] {
            let command = setun.find_subcommand(name).expect("a subcommand");
            for argument in command.get_arguments().filter(|argument| !argument.is_positional()) {
                let heading = argument.get_help_heading().unwrap_or_default();
                let is_known = GROUPS.iter().any(|(group, _)| *group == heading);
                assert!(is_known, "{name}: {} is in `{heading}`", argument.get_id());
            }
        }
        let has = |name: &str| {
            ["run", "chat"].into_iter().any(|command| {
                let command = setun.find_subcommand(command).expect("a subcommand");
                command.get_arguments().any(|argument| argument.get_id() == name)
            })
        };
        for name in COMMON
            .into_iter()
            .chain(GROUPS.into_iter().flat_map(|(_, names)| names.iter().copied()))
        {
            assert!(has(name), "{name} is no option");
        }
    }
}
