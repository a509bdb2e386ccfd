//! A conversation in a file.

use std::path::PathBuf;

use clap::Args;
use setun::Message;

use crate::{error::CliError, input};

/// Messages that are answered once.
#[derive(Args, Debug)]
pub(crate) struct MessageArgs {
    /// JSON file with a conversation, `-` for standard input: `[{"role": "user", "content": …}]`,
    /// as chat APIs have it. One answer is printed
    #[arg(long, value_name = "FILE")]
    messages: Option<PathBuf>,
}

impl MessageArgs {
    /// The messages, if a file is given.
    pub(crate) fn read(&self) -> Result<Option<Vec<Message>>, CliError> {
        let Some(path) = &self.messages else { return Ok(None) };
        let fault =
            |error: String| CliError::Usage(format!("--messages {}: {error}", path.display()));
        let list = serde_json::from_str(&input::file(path)?);
        let list =
            list.map_err(|error| fault(format!("it is no JSON list of objects: {error}")))?;
        Message::from_json(list).map(Some).map_err(|error| fault(error.to_string()))
    }
}
