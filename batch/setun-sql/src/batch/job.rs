//! The description of a job, as it stands in its output.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::requests;
use crate::{error::Error, functions::Function, identity::Identity, settings::unix_time};

/// A batch job.
#[derive(Clone, Debug)]
pub struct BatchJob {
    /// A file or a folder, here or in an object store: Parquet, CSV, JSON lines or Arrow.
    pub input: String,
    /// The folder of the results, here or in an object store.
    pub output: String,
    /// What a row has.
    pub conversation: Conversation,
    /// The column with the key of each row, from which its seed follows. By default the prompt is the key.
    pub key: Option<String>,
    /// Options of all rows, as those of `generate`.
    pub options: Option<String>,
    /// Seed of the job.
    pub seed: u64,
    /// Most rows of a chunk, 1 or more.
    pub chunk_rows: usize,
    /// About how many rows of a chunk an executor of a cluster takes at once.
    pub shard_rows: usize,
}

/// What a row has, by its column.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Conversation {
    /// A prompt, as `generate` takes it.
    Prompt(String),
    /// Messages as JSON, as `chat` takes them.
    Messages(String),
    /// Requests of `OpenAI`'s batch API: `custom_id`, `url` and `body`.
    Requests,
}

impl Conversation {
    pub(super) fn column(&self) -> &str {
        match self {
            Self::Prompt(column) | Self::Messages(column) => column,
            Self::Requests => requests::BODY,
        }
    }

    /// The end of the names of the files with results.
    pub(super) fn format(&self) -> &'static str {
        match self {
            Self::Prompt(_) | Self::Messages(_) => "parquet",
            Self::Requests => "jsonl",
        }
    }

    pub(super) fn function(&self) -> Function {
        match self {
            Self::Prompt(_) => Function::Generate,
            Self::Messages(_) => Function::Chat,
            Self::Requests => Function::Respond,
        }
    }
}

/// A job as it stands in its output. Results of another one are never mixed with its own.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Description {
    version: u32,
    /// Name of the model, which may change.
    model: String,
    /// Its identity.
    fingerprint: String,
    conversation: Conversation,
    key: Option<String>,
    options: Value,
    seed: u64,
    /// When it was begun, in seconds of Unix time: what chat templates have as today. Version 1 has none.
    #[serde(default)]
    pub(super) time: u64,
    pub(super) chunk_rows: usize,
    pub(super) files: Vec<InputFile>,
}

/// A file of the input.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct InputFile {
    pub(super) path: String,
    pub(super) bytes: u64,
    pub(super) sha256: String,
    pub(super) rows: usize,
}

/// The version of descriptions and of what follows from them.
const VERSION: u32 = 2;

impl BatchJob {
    /// The column with the keys.
    pub(super) fn key_column(&self) -> Option<&str> {
        match self.conversation {
            Conversation::Requests => Some(requests::KEY),
            _ => self.key.as_deref(),
        }
    }

    pub(super) fn describe(
        &self,
        files: Vec<InputFile>,
        model: Identity,
    ) -> Result<Description, Error> {
        let options = self.options.as_deref().unwrap_or("{}");
        let options = serde_json::from_str(options).map_err(|error| Error::Argument {
            function: self.conversation.function().name(),
            reason: error.to_string(),
        })?;
        Ok(Description {
            version: VERSION,
            model: model.name,
            fingerprint: model.fingerprint,
            conversation: self.conversation.clone(),
            key: self.key.clone(),
            options,
            seed: self.seed,
            time: unix_time(),
            chunk_rows: self.chunk_rows,
            files,
        })
    }
}

impl Description {
    /// Refuses a job that is not this one, by the first thing that differs.
    pub(super) fn check_same(&self, found: &Self) -> Result<(), Error> {
        let object = |description| match serde_json::to_value(description) {
            Ok(Value::Object(fields)) => fields,
            _ => serde_json::Map::new(),
        };
        let (mut expected, mut found) = (object(self), object(found));
        for may_differ in ["model", "time"] {
            expected.remove(may_differ);
        }
        for (field, expected) in expected {
            let found = found.remove(&field).unwrap_or_default();
            // As texts, in which the order counts: properties come as a schema has them.
            let (expected, found) = (expected.to_string(), found.to_string());
            if expected != found {
                return Err(Error::OtherJob { field, expected, found });
            }
        }
        Ok(())
    }

    /// Number of chunks.
    pub(super) fn chunks(&self) -> usize {
        let chunk_rows = self.chunk_rows.max(1);
        self.files.iter().map(|file| file.rows.div_ceil(chunk_rows)).sum()
    }

    pub(super) fn rows(&self) -> usize {
        self.files.iter().map(|file| file.rows).sum()
    }
}
