//! The error of this crate, and the code that JavaScript and scripts see.

use std::{fmt, io, sync::Arc, time::Duration};

use setun_model::ModelError;
use setun_ops::OpsError;
use setun_text::{OptionError, TextError};

/// Why something failed. [`Error::code`] sorts errors into few kinds.
///
/// `Debug` prints the sentences of the error and of its causes, so that a `main` that returns it ends
/// with them.
#[derive(thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The model could not be built, or a step failed.
    #[error(transparent)]
    Model(#[from] ModelError),

    /// The tokenizer, the chat template or the sampler failed.
    #[error(transparent)]
    Text(#[from] TextError),

    /// A form cannot be followed.
    #[cfg(feature = "grammar")]
    #[error(transparent)]
    Grammar(#[from] setun_grammar::GrammarError),

    /// A form that is custom, or one that a host has compiled, cannot be followed.
    #[error("{reason}")]
    Constraint {
        /// What it says.
        reason: String,
    },

    /// The checkpoint comes without something that the call needs.
    #[error("the model `{model}` has no {what}: expected {expected} beside its weights")]
    Missing {
        /// Name of the model.
        model: String,
        /// What is missing.
        what: &'static str,
        /// The files that it could have come from.
        expected: &'static str,
    },

    /// The prompt alone does not fit the context.
    #[error("the prompt has {tokens} tokens, the context holds {context} with the answer")]
    ContextFull {
        /// Tokens of the prompt.
        tokens: usize,
        /// Positions of a sequence.
        context: usize,
    },

    /// The prompt is so long that it does not fit the context, whatever its tokens are.
    #[error("the prompt has {tokens} tokens at least, the context holds {context} with the answer")]
    PromptTooLong {
        /// Tokens of the prompt at least, by its bytes.
        tokens: usize,
        /// Positions of a sequence.
        context: usize,
    },

    /// An option does not take its value.
    #[error("option `{option}` is {found}, expected {expected}")]
    BadOption {
        /// Its name.
        option: &'static str,
        /// Its value.
        found: String,
        /// What would do.
        expected: String,
    },

    /// More generations run and wait than the engine takes.
    #[error("{taken} generations run or wait already, expected at most {most} with this request")]
    Busy {
        /// Those that run or wait, each sample and beam by itself.
        taken: usize,
        /// Most that may: `max_concurrent` and `queue`.
        most: usize,
    },

    /// A generation has not begun to run within its `queue_timeout`.
    #[error("there was no room for the request within {} s (`queue_timeout`)", .limit.as_secs_f64())]
    QueueTimeout {
        /// The longest that it may wait.
        limit: Duration,
    },

    /// Bytes are no session, or damaged.
    #[error("a saved session cannot be read: {what} is {found}, expected {expected}")]
    Session {
        /// What was looked at.
        what: &'static str,
        /// What it should be.
        expected: &'static str,
        /// What it is.
        found: String,
    },

    /// A session has messages that its chat template takes only with one of the user.
    #[error(
        "the messages of this session wait for one of the user, as the chat template wants: push it first"
    )]
    WaitingMessages,

    /// A batch does not have the shape that a call needs.
    #[error("{what}: expected {expected}, found {found}")]
    BatchShape {
        /// What was counted.
        what: &'static str,
        /// How many there should be; of a bound, the bound.
        expected: usize,
        /// How many there are.
        found: usize,
    },

    /// A token is not of the model's vocabulary.
    #[error("row {row}, place {place}: token {token}, expected one below {vocabulary}")]
    UnknownToken {
        /// Row of the batch.
        row: usize,
        /// Its place in that row.
        place: usize,
        /// The token.
        token: u32,
        /// How many tokens there are.
        vocabulary: usize,
    },

    /// A row of a batch has no room for what it is to take.
    #[error("row {row} would come to {positions} positions, the context holds {context}")]
    RowFull {
        /// Row of the batch.
        row: usize,
        /// The positions that it would have.
        positions: usize,
        /// Positions of a sequence.
        context: usize,
    },

    /// A cache is used with another [`Inferencer`](crate::Inferencer) than the one that made it.
    #[error("the cache is of another inferencer, expected one that this inferencer made")]
    OtherCache,

    /// The system gives no thread.
    #[error("the engine's thread cannot be started: {0}")]
    Thread(io::Error),

    /// A model gives other outputs than were requested.
    #[error("the model's output cannot be used: {what} is {found}, expected {expected}")]
    ModelOutput {
        /// What was looked at.
        what: &'static str,
        /// What it should be.
        expected: String,
        /// What it is.
        found: String,
    },

    /// A step failed, and with it all generations that it served.
    #[error(transparent)]
    Step(Arc<Error>),

    /// A model could not be loaded once more, or its device not be tested.
    #[error("{reason}")]
    Loading {
        /// The kind of what went wrong.
        code: ErrorCode,
        /// What the loader says.
        reason: String,
    },

    /// The engine has ended: its scheduler was dropped, or stopped after an error.
    #[error("the engine has been disposed of")]
    Disposed,
}

/// Kinds of errors, as JavaScript and scripts see them. Each has a remedy in `docs/errors.md`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ErrorCode {
    /// A download failed.
    Network,
    /// There is nothing at the address.
    NotFound,
    /// A file is shorter than it says.
    Truncated,
    /// A file is damaged.
    BadCheckpoint,
    /// The model is of a kind that is not known.
    UnsupportedModel,
    /// The prompt does not fit.
    ContextFull,
    /// Memory ran out.
    OutOfMemory,
    /// The backend requested is not here.
    BackendUnavailable,
    /// The device went away.
    DeviceLost,
    /// The engine was disposed of.
    Disposed,
    /// An option is wrong.
    BadOption,
    /// The disk, or the room that a page is given on it, is full.
    StorageFull,
    /// Too many generations run and wait.
    Busy,
    /// The operating system refused to read or write a local file.
    Io,
    /// The caller cancelled a download, or the compilation of a constraint.
    Cancelled,
}

impl ErrorCode {
    /// The code as it is written.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Network => "network",
            Self::NotFound => "not-found",
            Self::Truncated => "truncated",
            Self::BadCheckpoint => "bad-checkpoint",
            Self::UnsupportedModel => "unsupported-model",
            Self::ContextFull => "context-full",
            Self::OutOfMemory => "out-of-memory",
            Self::BackendUnavailable => "backend-unavailable",
            Self::DeviceLost => "device-lost",
            Self::Disposed => "disposed",
            Self::BadOption => "bad-option",
            Self::StorageFull => "storage-full",
            Self::Busy => "busy",
            Self::Io => "io",
            Self::Cancelled => "cancelled",
        }
    }
}

/// Errors of local files; those of connections do not come as such.
impl From<&io::Error> for ErrorCode {
    fn from(error: &io::Error) -> Self {
        use io::ErrorKind::{
            FileTooLarge, NotFound, OutOfMemory, QuotaExceeded, StorageFull, UnexpectedEof,
        };
        match error.kind() {
            NotFound => Self::NotFound,
            StorageFull | QuotaExceeded | FileTooLarge => Self::StorageFull,
            UnexpectedEof => Self::Truncated,
            OutOfMemory => Self::OutOfMemory,
            _ => Self::Io,
        }
    }
}

impl fmt::Display for ErrorCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl From<OptionError> for Error {
    fn from(error: OptionError) -> Self {
        Self::Text(error.into())
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_chain(self, formatter)
    }
}

/// Writes an error and its causes. A cause that the sentence before it ends with is written once.
///
/// # Errors
///
/// If the formatter fails.
pub fn write_chain(
    error: &dyn std::error::Error,
    formatter: &mut fmt::Formatter<'_>,
) -> fmt::Result {
    let mut last = error.to_string();
    formatter.write_str(&last)?;
    let mut source = error.source();
    while let Some(cause) = source {
        let text = cause.to_string();
        if !last.ends_with(&text) {
            write!(formatter, ": {text}")?;
            last = text;
        }
        source = cause.source();
    }
    Ok(())
}

impl Error {
    /// Whether the reason lies in the request, in its tokens, template, options or length: another
    /// one may succeed, and the same one never will.
    #[must_use]
    pub fn is_of_request(&self) -> bool {
        matches!(self, Self::Text(_))
            || matches!(self.code(), ErrorCode::BadOption | ErrorCode::ContextFull)
    }

    /// The kind of this error.
    #[must_use]
    pub fn code(&self) -> ErrorCode {
        match self {
            Self::Model(error) => model_code(error),
            Self::Text(error) => text_code(error),
            #[cfg(feature = "grammar")]
            Self::Grammar(error) => grammar_code(error),
            Self::Missing { .. } | Self::ModelOutput { .. } => ErrorCode::UnsupportedModel,
            Self::ContextFull { .. } | Self::PromptTooLong { .. } | Self::RowFull { .. } => {
                ErrorCode::ContextFull
            }
            Self::Session { .. } => ErrorCode::BadCheckpoint,
            Self::Busy { .. } | Self::QueueTimeout { .. } => ErrorCode::Busy,
            Self::BadOption { .. }
            | Self::Constraint { .. }
            | Self::BatchShape { .. }
            | Self::UnknownToken { .. }
            | Self::WaitingMessages
            | Self::OtherCache => ErrorCode::BadOption,
            Self::Thread(_) => ErrorCode::OutOfMemory,
            Self::Step(error) => error.code(),
            Self::Loading { code, .. } => *code,
            Self::Disposed => ErrorCode::Disposed,
        }
    }
}

fn model_code(error: &ModelError) -> ErrorCode {
    match error {
        ModelError::Unsupported { .. } => ErrorCode::UnsupportedModel,
        ModelError::Ops(OpsError::OutOfMemory { .. } | OpsError::BeyondLimit { .. })
        | ModelError::CacheFull { .. } => ErrorCode::OutOfMemory,
        ModelError::Ops(OpsError::DeviceLost { .. }) => ErrorCode::DeviceLost,
        ModelError::Ops(OpsError::FloatMode) => ErrorCode::BackendUnavailable,
        ModelError::Stages { .. } => ErrorCode::BadOption,
        _ => ErrorCode::BadCheckpoint,
    }
}

#[cfg(feature = "grammar")]
fn grammar_code(error: &setun_grammar::GrammarError) -> ErrorCode {
    use setun_grammar::GrammarError;
    match error {
        GrammarError::Cancelled => ErrorCode::Cancelled,
        GrammarError::Thread { .. } => ErrorCode::OutOfMemory,
        _ => ErrorCode::BadOption,
    }
}

fn text_code(error: &TextError) -> ErrorCode {
    match error {
        TextError::Option(_)
        | TextError::OptionToken { .. }
        | TextError::EmptyOption { .. }
        | TextError::UnknownStep { .. }
        | TextError::RepeatedStep { .. }
        | TextError::NoTokenLeft
        | TextError::Message { .. }
        | TextError::NoFreeMark
        | TextError::Tool { .. }
        | TextError::ToolChoice { .. }
        | TextError::NeedsState { .. }
        | TextError::Processor { .. }
        | TextError::Filter { .. }
        | TextError::FilterPattern { .. }
        | TextError::MissingVariable { .. }
        | TextError::PromptTemplate { .. }
        | TextError::EmptyStopString { .. }
        | TextError::StopStrings { .. }
        | TextError::TemplateRefused { .. }
        | TextError::TemplateLimit { .. }
        | TextError::TemplateInterrupted { .. } => ErrorCode::BadOption,
        _ => ErrorCode::BadCheckpoint,
    }
}
