//! Errors of rows and of queries.

use datafusion::{arrow::error::ArrowError, error::DataFusionError};
use setun::EngineError;

/// Why a function has no result.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The row cannot be answered; the next one may. It becomes the row's `error`.
    #[error("{0}")]
    Row(String),

    /// A literal argument is wrong for every row.
    #[error("{function}: {reason}")]
    Argument {
        /// The function.
        function: &'static str,
        /// What is wrong with it.
        reason: String,
    },

    /// The input of a batch job is wrong.
    #[error("input `{input}`: {reason}")]
    Input {
        /// The file or folder.
        input: String,
        /// What is wrong with it.
        reason: String,
    },

    /// The output of a batch job cannot be read or written.
    #[error("output `{output}`: {reason}")]
    Output {
        /// What was read or written.
        output: String,
        /// What the store says.
        reason: String,
    },

    /// The output has another job.
    #[error("the output has another job: `{field}` is {found}, expected {expected}")]
    OtherJob {
        /// What differs.
        field: String,
        /// As this job has it.
        expected: String,
        /// As the output has it.
        found: String,
    },

    /// The model is not the one that the query is for.
    #[error("the model `{model}` has the fingerprint {found}, expected {expected}")]
    OtherModel {
        /// Name of the model.
        model: String,
        /// Its fingerprint.
        found: String,
        /// That of the query.
        expected: String,
    },

    /// A request has the answer of a server that has failed.
    #[error("a request was answered with {status}: {body}")]
    Answer {
        /// Its status.
        status: u16,
        /// What it says.
        body: String,
    },

    /// A file of a cluster's certificates is wrong.
    #[error("TLS: {}: {reason}", file.display())]
    Tls {
        /// The file.
        file: std::path::PathBuf,
        /// What is wrong with it.
        reason: String,
    },

    /// The executors of a cluster refuse what they are asked for.
    #[error("the executors of {address}: {reason}")]
    Refused {
        /// The address of their scheduler.
        address: String,
        /// What they say.
        reason: String,
    },

    /// A cluster has failed, or cannot be reached.
    #[error("the cluster at {address}: {reason}")]
    Cluster {
        /// The address of its scheduler.
        address: String,
        /// What it says.
        reason: String,
    },

    /// The query engine refuses a query.
    #[error(transparent)]
    Query(#[from] DataFusionError),

    /// The model cannot be loaded.
    #[error("the model cannot be loaded: {0}")]
    Load(String),

    /// The engine has failed. The same rows may succeed elsewhere, or later.
    #[error("the engine has failed: {0}")]
    Engine(EngineError),
}

impl Error {
    /// Whether the same may succeed another time.
    pub(crate) fn may_pass(&self) -> bool {
        matches!(self, Self::Cluster { .. })
    }

    /// Whether an executor has failed, of a cluster that was reached.
    pub(crate) fn is_of_a_task(&self) -> bool {
        matches!(self, Self::Cluster { reason, .. } if reason.contains("Task failed"))
    }
}

impl From<EngineError> for Error {
    fn from(error: EngineError) -> Self {
        if error.is_of_request() { Self::Row(error.to_string()) } else { Self::Engine(error) }
    }
}

impl From<ArrowError> for Error {
    fn from(error: ArrowError) -> Self {
        Self::Query(error.into())
    }
}

/// Executors try an [`IoError`](DataFusionError::IoError) again, and nothing else.
impl From<Error> for DataFusionError {
    fn from(error: Error) -> Self {
        match error {
            Error::Query(error) => error,
            Error::Row(_)
            | Error::Argument { .. }
            | Error::Input { .. }
            | Error::OtherJob { .. }
            | Error::OtherModel { .. }
            | Error::Refused { .. }
            | Error::Tls { .. } => Self::Execution(error.to_string()),
            Error::Answer { .. }
            | Error::Cluster { .. }
            | Error::Output { .. }
            | Error::Load(_)
            | Error::Engine(_) => Self::IoError(std::io::Error::other(error)),
        }
    }
}
