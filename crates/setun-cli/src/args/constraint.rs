//! Options of structured output.

use std::{
    path::{Path, PathBuf},
    time::Duration,
};

use clap::{Args, builder::NonEmptyStringValueParser};
use setun::{Engine, GrammarSpec, SharedConstraint, grammar::Interrupt};

use crate::{error::CliError, input};

/// Structured output.
#[derive(Args, Debug)]
#[command(next_help_heading = "Structured output")]
pub(crate) struct ConstraintArgs {
    #[command(flatten)]
    form: FormArgs,

    /// Allow properties that the schema does not list wherever `additionalProperties` is absent
    #[arg(
        long,
        requires = "json_schema",
        conflicts_with_all = ["json_object", "regex", "grammar", "choice"]
    )]
    open_objects: bool,
}

/// At most one constraint.
#[derive(Args, Debug)]
#[command(next_help_heading = "Structured output")]
#[group(multiple = false)]
struct FormArgs {
    /// JSON value that is valid under this schema (JSON text, or a file)
    ///
    /// It is on one line unless the schema has `"x-guidance": {"whitespace_flexible": true}`.
    #[arg(long, value_name = "SCHEMA")]
    json_schema: Option<String>,

    /// Any JSON object, on one line
    #[arg(long)]
    json_object: bool,

    /// Text that this regular expression matches as a whole
    #[arg(long, value_name = "EXPRESSION")]
    regex: Option<String>,

    /// Text that this grammar accepts: a GBNF file if its name ends in .gbnf, else a Lark file
    #[arg(long, value_name = "FILE")]
    grammar: Option<PathBuf>,

    /// One of these texts; repeatable
    #[arg(long, value_name = "TEXT", value_parser = NonEmptyStringValueParser::new())]
    choice: Vec<String>,
}

impl ConstraintArgs {
    /// The constraint, compiled for the engine's model; within the time that a text has, if it has
    /// one.
    pub(crate) fn constraint(
        &self,
        engine: &Engine,
        deadline: Option<Duration>,
    ) -> Result<Option<SharedConstraint>, CliError> {
        let compile = |spec| match deadline {
            Some(time) => engine.compile_grammar(&spec, &Interrupt::new().within(time)),
            None => engine.grammar(&spec),
        };
        let spec = self.form.spec()?;
        let spec = spec.map(|spec| if self.open_objects { spec.with_open_objects() } else { spec });
        Ok(spec.map(compile).transpose()?)
    }
}

impl FormArgs {
    fn spec(&self) -> Result<Option<GrammarSpec>, CliError> {
        Ok(if let Some(schema) = &self.json_schema {
            Some(read_schema(schema)?)
        } else if self.json_object {
            Some(GrammarSpec::JsonObject)
        } else if let Some(expression) = &self.regex {
            Some(GrammarSpec::Regex(expression.clone()))
        } else if let Some(path) = &self.grammar {
            let text = input::file(path)?;
            let is_gbnf = path.extension().is_some_and(|extension| extension == "gbnf");
            Some(if is_gbnf { GrammarSpec::Gbnf(text) } else { GrammarSpec::Lark(text) })
        } else if self.choice.is_empty() {
            None
        } else {
            Some(GrammarSpec::Choice(self.choice.clone()))
        })
    }
}

/// A schema that stands in the argument, or in the file of that name.
fn read_schema(schema: &str) -> Result<GrammarSpec, CliError> {
    let is_json = schema.trim_start().starts_with(['{', 't', 'f']);
    let text = if is_json { schema.to_owned() } else { input::file(Path::new(schema))? };
    GrammarSpec::json_schema(&text).map_err(|error| {
        let place = if is_json { "its argument" } else { schema };
        CliError::Usage(format!("--json-schema: {place}: {error}"))
    })
}
