//! Prompts with variables.

use std::path::Path;

use clap::Args;
use serde_json::{Map, Value};
use setun::PromptTemplate;

use crate::{error::CliError, input};

/// A prompt with variables.
#[derive(Args, Debug)]
#[command(next_help_heading = "A prompt with variables")]
pub(crate) struct TemplateArgs {
    /// The prompt as a template, in Jinja: a file with it, or the text itself, where it has a tag
    #[arg(long, value_name = "TEMPLATE", conflicts_with = "prompt")]
    template: Option<String>,

    /// A variable of the template, and its text; given for each
    #[arg(long, value_name = "NAME=TEXT", value_parser = text)]
    #[arg(requires = "template", conflicts_with = "prompt")]
    var: Vec<(String, Value)>,

    /// A variable of the template, and its value in JSON; given for each
    #[arg(long, value_name = "NAME=JSON", value_parser = json)]
    #[arg(requires = "template", conflicts_with = "prompt")]
    var_json: Vec<(String, Value)>,
}

impl TemplateArgs {
    /// What the template makes of the variables, if there is one.
    ///
    /// # Errors
    ///
    /// If it cannot be read, is not valid or fails, or a variable is not given.
    pub(crate) fn prompt(&self) -> Result<Option<String>, CliError> {
        let Some(template) = &self.template else { return Ok(None) };
        let has_tag = ["{{", "{%", "{#"].iter().any(|tag| template.contains(tag));
        let template = if has_tag {
            PromptTemplate::parse(template)?
        } else {
            PromptTemplate::named(template, &input::file(Path::new(template))?)?
        };
        let values: Map<_, _> = self.var.iter().chain(&self.var_json).cloned().collect();
        Ok(Some(template.render(&values)?))
    }
}

fn text(pair: &str) -> Result<(String, Value), String> {
    let (name, text) = split(pair)?;
    Ok((name, text.into()))
}

fn json(pair: &str) -> Result<(String, Value), String> {
    let (name, json) = split(pair)?;
    let value = serde_json::from_str(json);
    Ok((name, value.map_err(|error| format!("no JSON after `=`: {error}"))?))
}

fn split(pair: &str) -> Result<(String, &str), String> {
    match pair.split_once('=') {
        Some((name, value)) if !name.is_empty() => Ok((name.to_owned(), value)),
        _ => Err("expected a name, `=` and a value".to_owned()),
    }
}
