//! Why the registry could not do something.

use std::{io, path::PathBuf, time::Duration};

use crate::error::ErrorCode;

/// Why a pull, or a look into the registry, failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RegistryError {
    /// No model has such a name.
    #[error("`{name}` names no model: expected {expected}")]
    BadName {
        /// As it was given.
        name: String,
        /// What would do.
        expected: &'static str,
    },

    /// The registry has no such model.
    #[error("`{name}` is not in the registry at `{}`: {hint}", root.display())]
    NotHere {
        /// As it was given.
        name: String,
        /// The registry's folder.
        root: PathBuf,
        /// What to do, or what is there.
        hint: String,
    },

    /// Several files could be meant.
    #[error("`{name}` has several models: {}; name one as `{name}:FILE`", files.join(", "))]
    Ambiguous {
        /// As it was given.
        name: String,
        /// The files.
        files: Vec<String>,
    },

    /// Several hubs have given a model of this name.
    #[error("`{name}` is here from several hubs: name one of {}", models.join(", "))]
    Several {
        /// As it was given.
        name: String,
        /// Their whole names.
        models: Vec<String>,
    },

    /// The address has nothing that is a model.
    #[error("{address} has no model: looked for {expected}, found {found}")]
    NoModel {
        /// Where.
        address: String,
        /// What would have been a model.
        expected: &'static str,
        /// What is there.
        found: String,
    },

    /// No network is to be used, and the model is not there.
    #[error("`{name}` is not in the registry, and it is offline: pull it without {because}")]
    Offline {
        /// As it was given.
        name: String,
        /// The variable that says so.
        because: &'static str,
    },

    /// No answer, or none that could be understood.
    #[error("{address}: {reason}")]
    Network {
        /// What was asked for.
        address: String,
        /// What went wrong the last time.
        reason: String,
    },

    /// An answer that is no file.
    #[error("{address}: the server answered {status}{hint}")]
    Status {
        /// What was asked for.
        address: String,
        /// The status.
        status: u16,
        /// What may help.
        hint: &'static str,
    },

    /// The server asks to come back later than a pull waits.
    #[error("{address}: the server asks to wait {} s", wait.as_secs())]
    Busy {
        /// What was asked for.
        address: String,
        /// How long.
        wait: Duration,
    },

    /// What arrived has other bytes than it should have, the second time as well.
    #[error("{address}: wrong bytes{}: expected SHA-256 {expected}, found {found}", at(chunks))]
    WrongBytes {
        /// The file's address.
        address: String,
        /// The chunks that are wrong, or that differed between two fetches; empty where that is
        /// not known.
        chunks: Vec<u64>,
        /// The hash that was told.
        expected: String,
        /// The hash of what came.
        found: String,
    },

    /// A server sends another number of bytes than it, or a list, has told.
    #[error("{address}: expected {expected} bytes, found {found}")]
    WrongSize {
        /// The file's address.
        address: String,
        /// As told.
        expected: u64,
        /// As sent.
        found: String,
    },

    /// A file was another one each time that it was begun.
    #[error("{address}: changes while it is read: {reason}")]
    Unsteady {
        /// The file's address.
        address: String,
        /// What differed the last time.
        reason: String,
    },

    /// The disk has no room for a file.
    #[error("no room for `{}`: {bytes} bytes are still to be written; what is there is kept", path.display())]
    DiskFull {
        /// The file.
        path: PathBuf,
        /// Bytes that are still to come.
        bytes: u64,
    },

    /// A file of the registry could not be read or written.
    #[error("cannot {what} `{}`: {source}", path.display())]
    Io {
        /// What was to be done.
        what: &'static str,
        /// The file or folder.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },

    /// A file of the registry's own is damaged, or of a later version.
    #[error("`{}` is not one that this version reads: {reason}", path.display())]
    BadManifest {
        /// The file.
        path: PathBuf,
        /// Why.
        reason: String,
    },

    /// The caller ended it. What has arrived is kept.
    #[error("the pull was cancelled")]
    Cancelled,
}

fn at(chunks: &[u64]) -> String {
    let names: Vec<_> = chunks.iter().take(8).map(u64::to_string).collect();
    match chunks.len() {
        0 => String::new(),
        1 => format!(" in chunk {}", names[0]),
        count if count > names.len() => format!(" in {count} chunks ({}, …)", names.join(", ")),
        _ => format!(" in chunks {}", names.join(", ")),
    }
}

impl RegistryError {
    /// The kind of this error.
    #[must_use]
    pub fn code(&self) -> ErrorCode {
        match self {
            Self::BadName { .. } | Self::Ambiguous { .. } | Self::Several { .. } => {
                ErrorCode::BadOption
            }
            Self::NotHere { .. }
            | Self::NoModel { .. }
            | Self::Status { status: 404 | 410, .. } => ErrorCode::NotFound,
            Self::Io { source, .. } if source.kind() == io::ErrorKind::NotFound => {
                ErrorCode::NotFound
            }
            Self::WrongBytes { .. } | Self::BadManifest { .. } => ErrorCode::BadCheckpoint,
            Self::WrongSize { .. } => ErrorCode::Truncated,
            Self::DiskFull { .. } => ErrorCode::StorageFull,
            _ => ErrorCode::Network,
        }
    }

    /// An error of the system, sorted: a full disk is one of its own. `bytes` are still to come.
    pub(super) fn io(
        what: &'static str,
        path: &std::path::Path,
        bytes: u64,
        source: io::Error,
    ) -> Self {
        use io::ErrorKind::{FileTooLarge, QuotaExceeded, StorageFull};
        let path = path.to_owned();
        match source.kind() {
            StorageFull | QuotaExceeded | FileTooLarge => Self::DiskFull { path, bytes },
            _ => Self::Io { what, path, source },
        }
    }
}
