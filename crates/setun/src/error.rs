//! The error of this crate: what loading fails with, and the engine's own.

use std::{fmt, io, path::PathBuf, sync::Arc};

use setun_checkpoint::{CheckpointError, ErrorKind};
pub use setun_engine::ErrorCode;
use setun_engine::{Error as EngineError, write_chain};
use setun_model::ModelError;
use setun_text::{OptionError, TextError};

/// Why something failed. [`Error::code`] sorts errors into few kinds.
///
/// `Debug` prints the sentences of the error and of its causes, so that a `main` that returns it ends
/// with them.
#[derive(thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A file or folder could not be read.
    #[error("cannot read `{}`: {source}", path.display())]
    Io {
        /// What was to be read.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },

    /// An image of weights could not be written.
    #[cfg(not(target_family = "wasm"))]
    #[error("cannot write the weight image `{}`: {source}", path.display())]
    Unwritable {
        /// Where it was to be.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },

    /// A file that is named as an image of weights is something else, and is left as it is.
    #[cfg(not(target_family = "wasm"))]
    #[error("`{}` is no weight image: name a file that is one, or that is not there", path.display())]
    NotAnImage {
        /// The file.
        path: PathBuf,
    },

    /// The image of the weights in a `.setun` file is not as it was written.
    #[cfg(not(target_family = "wasm"))]
    #[error("the weight image in `{}` is damaged: convert the model again", path.display())]
    DamagedImage {
        /// The file.
        path: PathBuf,
    },

    /// A host cannot give the bytes of a file: a page's download failed, or was ended.
    #[error("cannot read `{file}`: {reason}")]
    Unreadable {
        /// The file, as the checkpoint names it.
        file: String,
        /// What the host said.
        reason: String,
    },

    /// There is no model where one was expected.
    #[error("no model at `{}`: looked for {expected}, found {found}", path.display())]
    NoModel {
        /// Where.
        path: PathBuf,
        /// What would have been a model.
        expected: &'static str,
        /// What is there.
        found: String,
    },

    /// A name that no model on this machine has.
    #[error("no model `{name}`: {searched}; {hint}")]
    UnknownModel {
        /// The name.
        name: String,
        /// The places that were searched.
        searched: String,
        /// What to do about it.
        hint: String,
        /// Whether a pull may bring it.
        can_pull: bool,
    },

    /// A checkpoint is damaged or not one that can be read.
    #[error(transparent)]
    Checkpoint(#[from] CheckpointError),

    /// The checkpoint's tokenizer cannot be used. Its weights can.
    #[error(transparent)]
    Tokenizer(Arc<CheckpointError>),

    /// A loader was finished before it had all bytes.
    #[error("the model `{model}` is not loaded yet: bytes are still missing")]
    Unfinished {
        /// Name of the model.
        model: String,
    },

    /// A device or level is not here.
    #[error("backend `{wanted}` is not available: {reason}; here are: {available}")]
    BackendUnavailable {
        /// What was requested.
        wanted: String,
        /// Why not.
        reason: String,
        /// What there is.
        available: String,
    },

    /// An option in JSON has no such name, or no such type.
    #[cfg(feature = "grammar")]
    #[error("option `{name}` {reason}")]
    Option {
        /// Its name.
        name: String,
        /// What is wrong.
        reason: String,
    },

    /// A text is no conversation in JSON.
    #[cfg(feature = "grammar")]
    #[error("messages: expected a JSON array of messages: {reason}")]
    Messages {
        /// What is wrong.
        reason: String,
    },

    /// A configuration cannot be read.
    #[cfg(all(feature = "config", not(target_family = "wasm")))]
    #[error("`{file}`, line {line}: {reason}")]
    Config {
        /// The file.
        file: String,
        /// The line, from 1 on.
        line: usize,
        /// What is wrong.
        reason: String,
    },

    /// The store of models, or a pull, failed.
    #[cfg(all(feature = "hub", not(target_family = "wasm")))]
    #[error(transparent)]
    Hub(#[from] setun_hub::Error),

    /// The engine, its options, or the model, the tokenizer and the templates that it runs.
    #[error(transparent)]
    Engine(#[from] EngineError),
}

impl fmt::Debug for Error {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_chain(self, formatter)
    }
}

impl Error {
    /// The kind of this error.
    #[must_use]
    pub fn code(&self) -> ErrorCode {
        match self {
            Self::Io { source, .. } => source.into(),
            #[cfg(not(target_family = "wasm"))]
            Self::Unwritable { source, .. } => source.into(),
            #[cfg(not(target_family = "wasm"))]
            Self::NotAnImage { .. } => ErrorCode::BadOption,
            #[cfg(not(target_family = "wasm"))]
            Self::DamagedImage { .. } => ErrorCode::BadCheckpoint,
            #[cfg(feature = "grammar")]
            Self::Option { .. } | Self::Messages { .. } => ErrorCode::BadOption,
            Self::Unreadable { .. } => ErrorCode::Network,
            Self::NoModel { .. } | Self::UnknownModel { .. } => ErrorCode::NotFound,
            Self::Checkpoint(error) => checkpoint_code(error),
            Self::Tokenizer(error) => checkpoint_code(error),
            Self::Unfinished { .. } => ErrorCode::Truncated,
            Self::BackendUnavailable { .. } => ErrorCode::BackendUnavailable,
            #[cfg(all(feature = "config", not(target_family = "wasm")))]
            Self::Config { .. } => ErrorCode::BadOption,
            #[cfg(all(feature = "hub", not(target_family = "wasm")))]
            Self::Hub(error) => hub_code(error.kind()),
            Self::Engine(error) => error.code(),
        }
    }
}

impl From<ModelError> for Error {
    fn from(error: ModelError) -> Self {
        match error {
            ModelError::Checkpoint(error) => Self::Checkpoint(error),
            error => Self::Engine(error.into()),
        }
    }
}

#[cfg(all(feature = "hub", not(target_family = "wasm")))]
fn hub_code(kind: setun_hub::ErrorKind) -> ErrorCode {
    use setun_hub::ErrorKind;
    match kind {
        ErrorKind::InvalidRequest => ErrorCode::BadOption,
        ErrorKind::NotFound => ErrorCode::NotFound,
        ErrorKind::Truncated => ErrorCode::Truncated,
        ErrorKind::Corrupt => ErrorCode::BadCheckpoint,
        ErrorKind::Network => ErrorCode::Network,
        ErrorKind::StorageFull => ErrorCode::StorageFull,
        ErrorKind::Io => ErrorCode::Io,
        ErrorKind::Cancelled => ErrorCode::Cancelled,
    }
}

/// The engine's error for a failed load.
impl From<Error> for EngineError {
    fn from(error: Error) -> Self {
        match error {
            Error::Engine(error) => error,
            error => Self::Loading { code: error.code(), reason: error.to_string() },
        }
    }
}

impl From<TextError> for Error {
    fn from(error: TextError) -> Self {
        Self::Engine(error.into())
    }
}

impl From<OptionError> for Error {
    fn from(error: OptionError) -> Self {
        Self::Engine(error.into())
    }
}

fn checkpoint_code(error: &CheckpointError) -> ErrorCode {
    match error.kind() {
        ErrorKind::Truncated => ErrorCode::Truncated,
        ErrorKind::OutOfMemory => ErrorCode::OutOfMemory,
        ErrorKind::NotFound => ErrorCode::NotFound,
        ErrorKind::Unsupported => ErrorCode::UnsupportedModel,
        ErrorKind::Damaged => ErrorCode::BadCheckpoint,
    }
}
