//! Errors of the store and of pulls.

use std::{io, path::PathBuf, time::Duration};

/// An error of the store or of a pull. [`Error::kind`] groups them.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The text is not a model name.
    #[error("`{name}` is not a model name: expected {expected}")]
    InvalidName {
        /// The text.
        name: String,
        /// The accepted forms.
        expected: &'static str,
    },

    /// The store has no such model.
    #[error("`{name}` is not in the store at `{}`: {hint}", root.display())]
    NotFound {
        /// The name that was requested.
        name: String,
        /// The store's folder.
        root: PathBuf,
        /// What to do about it.
        hint: String,
        /// Whether a pull may bring it.
        can_pull: bool,
    },

    /// The model is in the store, and a file of it is missing or has another size.
    #[error(
        "`{name}` is damaged in the store at `{}`: {reason}; `setun models pull {name}` repairs it{other}",
        folder.display()
    )]
    Damaged {
        /// The name that was requested.
        name: String,
        /// The folder of the revision.
        folder: PathBuf,
        /// What is wrong with it.
        reason: String,
        /// What else is here: another revision, with its folder.
        other: String,
    },

    /// The repository has several models, and none was chosen.
    #[error("`{name}` has several models: {}; name one as `{name}:FILE`", files.join(", "))]
    AmbiguousFile {
        /// The name that was requested.
        name: String,
        /// The candidates.
        files: Vec<String>,
    },

    /// Models of this name were pulled from several hubs.
    #[error("`{name}` was pulled from several hubs: name one of {}", models.join(", "))]
    AmbiguousHub {
        /// The name that was requested.
        name: String,
        /// The candidates, each with its host.
        models: Vec<String>,
    },

    /// The address has no model.
    #[error("{address} has no model: looked for {expected}, found {found}")]
    NoModel {
        /// The address.
        address: String,
        /// What would have been a model.
        expected: &'static str,
        /// The files that are there.
        found: String,
    },

    /// The model is not in the store, and the network is switched off.
    #[error(
        "`{name}` is not in the store, and the network is switched off: pull it without {because}"
    )]
    Offline {
        /// The name that was requested.
        name: String,
        /// The environment variable that switches it off.
        because: &'static str,
    },

    /// No answer, or one that cannot be understood.
    #[error("{address}: {reason}")]
    Network {
        /// The address.
        address: String,
        /// The failure of the last attempt.
        reason: String,
    },

    /// The server answered with an error status.
    #[error("{address}: the server answered {status}{hint}")]
    HttpStatus {
        /// The address.
        address: String,
        /// The status.
        status: u16,
        /// What may help.
        hint: &'static str,
    },

    /// The server requests a longer wait than
    /// [`PullOptions::max_wait`](crate::PullOptions::max_wait).
    #[error("{address}: the server asks to wait {} s", wait.as_secs())]
    RateLimited {
        /// The address.
        address: String,
        /// The wait.
        wait: Duration,
    },

    /// The bytes do not have the expected hash, the second time as well.
    #[error(
        "{address}: wrong bytes{}: expected SHA-256 {expected}, found {found}",
        in_chunks(chunks)
    )]
    ChecksumMismatch {
        /// The file's address.
        address: String,
        /// The chunks that are wrong, or that differed between two fetches; empty if unknown.
        chunks: Vec<u64>,
        /// The expected hash.
        expected: String,
        /// The hash of the received bytes.
        found: String,
    },

    /// The server sent another number of bytes than announced.
    #[error("{address}: expected {expected} bytes, found {found}")]
    SizeMismatch {
        /// The file's address.
        address: String,
        /// The announced number.
        expected: u64,
        /// The received number.
        found: String,
    },

    /// The files on the server changed at each attempt.
    #[error("{address}: changes while it is read: {reason}")]
    SourceChanged {
        /// The address.
        address: String,
        /// The difference at the last attempt.
        reason: String,
    },

    /// The disk is full. What has arrived is kept.
    #[error("no room for `{}`: {bytes} bytes are still to be written; the bytes already there are kept", path.display())]
    DiskFull {
        /// The file.
        path: PathBuf,
        /// Bytes that are still to be written.
        bytes: u64,
    },

    /// The disk does not give back the bytes that were written to it.
    #[error("`{}`: the disk gives other bytes than were written", path.display())]
    DiskCorruption {
        /// The file.
        path: PathBuf,
    },

    /// A file or folder could not be read or written.
    #[error("cannot {operation} `{}`: {source}", path.display())]
    Io {
        /// The operation, as a verb.
        operation: &'static str,
        /// The file or folder.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },

    /// The file named by `SSL_CERT_FILE` has no certificate.
    #[error("`{}` has no certificate in PEM form", path.display())]
    NoCertificate {
        /// The file.
        path: PathBuf,
    },

    /// A file of the store is damaged, or of a later version.
    #[error("`{}` is not one that this version reads: {reason}", path.display())]
    InvalidManifest {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },

    /// The pull has taken as long as it may. What has arrived is kept.
    #[error("the pull has reached its deadline; what has arrived is kept")]
    DeadlineExceeded,

    /// The caller cancelled the pull. What has arrived is kept.
    #[error("the pull was cancelled")]
    Cancelled,
}

/// Kind of an [`Error`], by what can be done about it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ErrorKind {
    /// The caller requested something that cannot be: a name, an ambiguous choice, a setting.
    InvalidRequest,
    /// There is no such model, revision or file.
    NotFound,
    /// The network or a server failed, or the network is switched off.
    Network,
    /// A file has fewer or more bytes than announced.
    Truncated,
    /// A file has wrong bytes, or the store's own files are damaged.
    Corrupt,
    /// The disk is full.
    StorageFull,
    /// The operating system refused to read or write a file.
    Io,
    /// The caller cancelled.
    Cancelled,
}

impl Error {
    /// The kind of this error.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::InvalidName { .. }
            | Self::AmbiguousFile { .. }
            | Self::AmbiguousHub { .. }
            | Self::NoCertificate { .. } => ErrorKind::InvalidRequest,
            Self::NotFound { .. }
            | Self::NoModel { .. }
            | Self::HttpStatus { status: 404 | 410, .. } => ErrorKind::NotFound,
            Self::Offline { .. }
            | Self::Network { .. }
            | Self::HttpStatus { .. }
            | Self::RateLimited { .. }
            | Self::SourceChanged { .. }
            | Self::DeadlineExceeded => ErrorKind::Network,
            Self::ChecksumMismatch { .. } | Self::InvalidManifest { .. } | Self::Damaged { .. } => {
                ErrorKind::Corrupt
            }
            Self::SizeMismatch { .. } => ErrorKind::Truncated,
            Self::DiskFull { .. } => ErrorKind::StorageFull,
            Self::Io { source, .. } if source.kind() == io::ErrorKind::NotFound => {
                ErrorKind::NotFound
            }
            Self::Io { .. } | Self::DiskCorruption { .. } => ErrorKind::Io,
            Self::Cancelled => ErrorKind::Cancelled,
        }
    }

    /// An error of the system. A full disk has a variant of its own; `bytes` are still to be
    /// written.
    pub(crate) fn io(
        operation: &'static str,
        path: &std::path::Path,
        bytes: u64,
        source: io::Error,
    ) -> Self {
        use io::ErrorKind::{FileTooLarge, QuotaExceeded, StorageFull};
        let path = path.to_owned();
        match source.kind() {
            StorageFull | QuotaExceeded | FileTooLarge => Self::DiskFull { path, bytes },
            _ => Self::Io { operation, path, source },
        }
    }
}

fn in_chunks(chunks: &[u64]) -> String {
    let names: Vec<_> = chunks.iter().take(8).map(u64::to_string).collect();
    match chunks.len() {
        0 => String::new(),
        1 => format!(" in chunk {}", names[0]),
        count if count > names.len() => format!(" in {count} chunks ({}, …)", names.join(", ")),
        _ => format!(" in chunks {}", names.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn local_failures_are_no_network_failures() {
        let of = |kind: io::ErrorKind| {
            Error::io("read", std::path::Path::new("m.gguf"), 0, kind.into()).kind()
        };
        assert_eq!(of(io::ErrorKind::PermissionDenied), ErrorKind::Io);
        assert_eq!(of(io::ErrorKind::NotFound), ErrorKind::NotFound);
        assert_eq!(of(io::ErrorKind::StorageFull), ErrorKind::StorageFull);
    }
}
