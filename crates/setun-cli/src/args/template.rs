//! Options of prompt templates.

use std::path::Path;

use clap::Args;
use serde_json::{Map, Value};
use setun::PromptTemplate;

use crate::{error::CliError, input};

/// A prompt template and its variables.
#[derive(Args, Debug)]
#[command(next_help_heading = "Prompt template")]
pub(crate) struct TemplateArgs {
    /// Jinja template of the prompt: a file, or the template itself if it contains a tag
    #[arg(long, value_name = "TEMPLATE", conflicts_with = "prompt")]
    template: Option<String>,

    /// Variable of the template with a text value; repeatable
    #[arg(long, value_name = "NAME=TEXT", value_parser = text)]
    #[arg(requires = "template", conflicts_with = "prompt")]
    var: Vec<(String, Value)>,

    /// Variable of the template with a JSON value; repeatable
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
