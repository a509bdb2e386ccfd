//! Errors of the commands, and their exit statuses.

use std::{io, path::PathBuf};

use setun::ErrorCode;

use crate::flags;

/// Exit status of a failure.
const FAILED: u8 = 1;

/// Exit status of wrong usage, as of arguments that cannot be read.
const USAGE: u8 = 2;

/// Exit status of a text that ends before its constraint is met.
const UNFINISHED: u8 = 3;

/// Exit status of a subcommand whose command is not installed, as shells have it.
const NOT_INSTALLED: u8 = 127;

/// Why a command ended before its work was done.
#[derive(Debug, thiserror::Error)]
pub enum CliError {
    /// The engine or a model.
    #[error("[{}] {}", .0.code(), one_line(&flags::message(.0)))]
    Setun(setun::Error),

    /// A file could not be written.
    #[error("[{}] cannot write `{}`: {source}", ErrorCode::from(source), path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },

    /// A file to write is there already.
    #[error("[bad-option] `{}` exists already; --force overwrites it", path.display())]
    Exists {
        /// The file.
        path: PathBuf,
    },

    /// A folder to write has other files.
    #[error(
        "[bad-option] the folder `{}` has files, such as `{first}`: name one that is empty or not \
         there; --force writes into it",
        path.display()
    )]
    NotEmpty {
        /// The folder.
        path: PathBuf,
        /// One of the files.
        first: String,
    },

    /// A file to write is one that is read.
    #[error(
        "[bad-option] `{}` is a file of the model that is read: write to another place",
        path.display()
    )]
    IsSource {
        /// The file or folder.
        path: PathBuf,
    },

    /// There is something else where a file is to be written.
    #[error("[bad-option] cannot write `{}`: it is {found}, expected a file", path.display())]
    NotAFile {
        /// The path.
        path: PathBuf,
        /// What it is.
        found: &'static str,
    },

    /// There is something else where a folder is to be written.
    #[error("[bad-option] cannot write `{}`: it is a file, expected a folder", path.display())]
    NotAFolder {
        /// The path.
        path: PathBuf,
    },

    /// There is no folder for what is to be written.
    #[error(
        "[not-found] cannot write `{}`: there is no folder `{}`",
        path.display(),
        folder.display()
    )]
    NoFolder {
        /// What is to be written.
        path: PathBuf,
        /// The folder.
        folder: PathBuf,
    },

    /// Another process writes the same.
    #[error("[busy] another process is writing `{}`", path.display())]
    Locked {
        /// The file or folder.
        path: PathBuf,
    },

    /// Another process may be writing the same, where that cannot be known.
    #[error(
        "[busy] another process is writing `{}`, or was killed while it did: this file system has \
         no locks, so remove `{}` if there is none",
        path.display(),
        lock.display()
    )]
    LockFile {
        /// The file or folder.
        path: PathBuf,
        /// What the other has made.
        lock: PathBuf,
    },

    /// There is something else where a lock is to be made.
    #[error(
        "[bad-option] cannot write `{}`: `{}` beside it is no lock of setun",
        path.display(),
        lock.display()
    )]
    NoLock {
        /// The file or folder.
        path: PathBuf,
        /// The other file.
        lock: PathBuf,
    },

    /// A chat with a model that has no form for it.
    #[error(
        "[{}] `{model}` has no chat template, so it cannot chat; type: {command}",
        ErrorCode::UnsupportedModel
    )]
    NoChatTemplate {
        /// Name of the model.
        model: String,
        /// What starts a chat with another model.
        command: String,
    },

    /// An address that a server could not be bound to.
    #[cfg(feature = "serve")]
    #[error("[io] cannot listen at {address}: {source}")]
    Listen {
        /// The address.
        address: String,
        /// What the system said.
        source: io::Error,
    },

    /// A model that a server loads at its start.
    #[cfg(feature = "serve")]
    #[error("{0}")]
    Load(String),

    /// A query failed.
    #[error("[{code}] {}", one_line(reason))]
    Query {
        /// Its kind.
        code: ErrorCode,
        /// What the query engine says.
        reason: String,
    },

    /// A subcommand of another command, which is not there.
    #[error(
        "[not-found] `setun {subcommand}` needs the command `{program}`, which is neither beside \
         `setun` nor on the path; archives of releases have it, and in a checkout this installs it: \
         {install}"
    )]
    NotInstalled {
        /// The subcommand.
        subcommand: &'static str,
        /// The other command.
        program: &'static str,
        /// What installs it.
        install: &'static str,
    },

    /// Another command could not be started.
    #[error("[{}] cannot start `{}`: {source}", ErrorCode::from(source), program.display())]
    Start {
        /// The command.
        program: PathBuf,
        /// What the system said.
        source: io::Error,
    },

    /// Standard input could not be read.
    #[error("[io] cannot read standard input: {0}")]
    Input(io::Error),

    /// A text that is no UTF-8.
    #[error("[bad-option] {what} is not UTF-8: byte {offset} starts no character")]
    Encoding {
        /// Where it came from.
        what: String,
        /// Bytes before it.
        offset: usize,
    },

    /// Standard output could not be written.
    #[error("[{}] cannot write standard output: {}", ErrorCode::from(.0), .0)]
    Output(io::Error),

    /// Arguments that do not go together.
    #[error("{0}")]
    Usage(String),

    /// A peer of a bench.
    #[error("the peer `{name}` failed: {why}")]
    Peer {
        /// As it was given.
        name: String,
        /// What it said.
        why: String,
    },

    /// Two rounds of a bench gave different tokens.
    #[error(
        "{what} gave other tokens than the first round: sequence {sequence}, from token {token} on: \
         please report this, with your processor's name"
    )]
    Unsteady {
        /// The later round.
        what: &'static str,
        /// The sequence of the batch.
        sequence: usize,
        /// The first token that differs.
        token: usize,
    },

    /// A text ended before its constraint was met. It is printed already.
    #[error("the text is unfinished, as its form has it go on: {reason}")]
    Unfinished {
        /// What ended it.
        reason: &'static str,
    },

    /// Models of the store that are not as they were pulled.
    #[error(
        "[bad-checkpoint] damaged: {}; `setun models pull --verify NAME` repairs a model, \
         `setun models rm NAME` removes it",
        what.join(", ")
    )]
    Damaged {
        /// Their names, each with what is known of the damage.
        what: Vec<String>,
    },

    /// Stored models have all their bytes, but cannot be used.
    #[error("[bad-checkpoint] cannot be used: {}", what.join(", "))]
    Unusable {
        /// Their names.
        what: Vec<String>,
    },

    /// The reader of standard output has closed it. Not a failure.
    #[error("the reader of standard output has left")]
    ClosedPipe,

    /// Ctrl-C, or another signal.
    #[error("interrupted")]
    Interrupted {
        /// 128 and the number of the signal.
        status: u8,
    },
}

impl CliError {
    /// The exit status.
    pub(crate) fn status(&self) -> u8 {
        match self {
            Self::ClosedPipe => 0,
            Self::Interrupted { status } => *status,
            Self::Usage(_) => USAGE,
            Self::Unfinished { .. } => UNFINISHED,
            Self::NotInstalled { .. } => NOT_INSTALLED,
            _ => FAILED,
        }
    }

    /// Whether the user has caused the end, and needs no message.
    pub(crate) fn is_silent(&self) -> bool {
        matches!(self, Self::ClosedPipe | Self::Interrupted { .. })
    }
}

/// Errors of the library's crates are the library's.
impl<E: Into<setun::Error>> From<E> for CliError {
    fn from(error: E) -> Self {
        Self::Setun(error.into())
    }
}

/// Messages of libraries may have several lines; scripts expect one.
fn one_line(message: &str) -> String {
    message.split_whitespace().collect::<Vec<_>>().join(" ")
}
