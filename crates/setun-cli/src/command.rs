//! A command from its arguments to its exit status.

use std::{
    env,
    ffi::OsString,
    process::{self, ExitCode},
};

use clap::{
    ArgMatches, Command as Arguments, Parser,
    builder::StyledStr,
    error::{ContextKind, ContextValue, ErrorKind},
};

use crate::{
    error::CliError,
    help::without_marks,
    interrupt, log_writer,
    logging::{self, LogFormat},
    output::report,
    terminal::is_control,
};

/// A command, as its arguments ask for it.
pub trait Command: Parser {
    /// The filter of the log without `RUST_LOG`.
    fn log_filter(&self) -> Option<&'static str>;

    /// Does what was requested.
    fn run(self) -> Result<(), CliError>;
}

/// Runs the subcommand of this process's arguments. Where they are wrong or ask for help, the process
/// ends.
#[must_use]
pub fn run<C: Command>() -> ExitCode {
    let command: C = from_command_line(C::command());
    begin(LogFormat::default(), command.log_filter());
    end(command.run())
}

/// Reads the arguments of this process; ends it where they are wrong, or ask for help.
pub(crate) fn from_command_line<C: Parser>(arguments: Arguments) -> C {
    let (mut arguments, matches) = matches(arguments);
    C::from_arg_matches(&matches).unwrap_or_else(|error| exit_with(&error.format(&mut arguments)))
}

fn matches(arguments: Arguments) -> (Arguments, ArgMatches) {
    let mut arguments = without_marks(with_negative_numbers(arguments));
    match arguments.try_get_matches_from_mut(env::args_os()) {
        Ok(matches) => (arguments, matches),
        Err(error) => exit_with(&with_tip(error).format(&mut arguments)),
    }
}

/// Words of other programs, and the command that is meant.
const MEANT: [(&[&str], &str); 9] = [
    (&["generate", "gen", "complete", "completion", "prompt", "cli"], "run"),
    (&["server", "api", "start"], "serve"),
    (&["pull", "download", "get"], "models pull"),
    (&["list", "ls", "ps"], "models list"),
    (&["search", "catalog"], "models search"),
    (&["rm", "remove", "delete"], "models rm"),
    (&["show", "info"], "inspect"),
    (&["quantize", "export"], "convert"),
    (&["embedding", "embeddings"], "embed"),
];

/// The error of an unknown subcommand with a tip: the command that is meant.
fn with_tip(mut error: clap::Error) -> clap::Error {
    if error.kind() != ErrorKind::InvalidSubcommand {
        return error;
    }
    let Some(ContextValue::String(found)) = error.get(ContextKind::InvalidSubcommand) else {
        return error;
    };
    let is_meant = |(words, _): &&(&[&str], &str)| words.contains(&found.as_str());
    if let Some((_, meant)) = MEANT.iter().find(is_meant) {
        let tip = StyledStr::from(format!("the command is 'setun {meant}'"));
        error.remove(ContextKind::SuggestedSubcommand);
        error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![tip]));
    }
    error
}

/// The set-up of every command.
pub(crate) fn begin(log: LogFormat, filter: Option<&str>) {
    logging::install(log, filter);
    interrupt::install();
}

/// The exit status of a command; its error is reported.
pub(crate) fn end(ended: Result<(), CliError>) -> ExitCode {
    if let Err(error) = &ended
        && !error.is_silent()
    {
        report(&format!("setun: {error}\n"));
    }
    log_writer::flush();
    ended.map_or_else(|error| ExitCode::from(error.status()), |()| ExitCode::SUCCESS)
}

/// Ends the process with help or an error. An error quotes arguments, and has no styles where one of
/// them has control characters: the same characters make the styles.
fn exit_with(error: &clap::Error) -> ! {
    let has_control = |argument: OsString| argument.to_string_lossy().contains(is_control);
    if error.use_stderr() && env::args_os().any(has_control) {
        report(&error.render().to_string());
        process::exit(error.exit_code());
    }
    error.exit()
}

/// Makes every argument take a negative number as its value, so that one that is out of range is
/// refused as such.
fn with_negative_numbers(command: Arguments) -> Arguments {
    let takes_them = |argument: clap::Arg| {
        let takes_values = argument.get_action().takes_values();
        argument.allow_negative_numbers(takes_values)
    };
    command.mut_args(takes_them).mut_subcommands(with_negative_numbers)
}
