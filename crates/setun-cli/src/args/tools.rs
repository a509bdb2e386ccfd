//! Tools of a conversation.

use std::path::PathBuf;

use clap::Args;
use setun::{
    GenerateOptions,
    text::{Tool, ToolChoice},
};

use crate::{error::CliError, input};

/// Functions that the model may call.
#[derive(Args, Debug)]
#[command(next_help_heading = "Tools")]
pub(crate) struct ToolArgs {
    /// JSON file with the functions that the model may call: `[{"type": "function", "function":
    /// {"name": …, "description": …, "parameters": …}}]`
    #[arg(long, value_name = "FILE")]
    tools: Option<PathBuf>,

    /// Whether the model calls a function: auto, none, required, or the name of one. It holds for
    /// the answer to a message; after results the model decides itself [default: auto]
    #[arg(long, value_name = "CHOICE", requires = "tools")]
    tool_choice: Option<String>,

    /// Whether an answer may have several calls [default: true]
    #[arg(long, value_name = "BOOL", requires = "tools")]
    parallel_tool_calls: Option<bool>,
}

impl ToolArgs {
    /// Adds the tools to the options.
    pub(crate) fn add_to(&self, options: &mut GenerateOptions) -> Result<(), CliError> {
        let Some(path) = &self.tools else { return Ok(()) };
        let fault =
            |error: String| CliError::Usage(format!("--tools {}: {}", path.display(), error));
        let list = serde_json::from_str(&input::file(path)?);
        let list = list.map_err(|error| fault(format!("it is no JSON list: {error}")))?;
        options.tools = Tool::from_json(list).map_err(|error| fault(error.to_string()))?;
        options.tool_choice = self.tool_choice.as_deref().map(choice);
        options.parallel_tool_calls = self.parallel_tool_calls;
        if let Some(choice) = &options.tool_choice {
            let checked = choice.offered(&options.tools);
            checked.map_err(|error| CliError::Usage(format!("--tool-choice: {error}")))?;
        }
        Ok(())
    }
}

fn choice(name: &str) -> ToolChoice {
    match name {
        "auto" => ToolChoice::Auto,
        "none" => ToolChoice::None,
        "required" => ToolChoice::Required,
        name => ToolChoice::Function(name.to_owned()),
    }
}
