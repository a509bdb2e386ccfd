//! Errors of files and batches.

use std::{io, path::PathBuf};

use axum::http::StatusCode;
use tracing::warn;

use crate::{error::ApiError, excerpt::excerpt};

/// Why a folder of files cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FilesError {
    /// It cannot be read or written.
    #[error("{}: {source}", path.display())]
    Io {
        /// The folder or file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },

    /// Another server has it.
    #[error("{}: another server uses this folder", path.display())]
    InUse {
        /// The folder.
        path: PathBuf,
    },
}

impl ApiError {
    /// Routes of files on a server without them.
    pub(crate) fn files_are_off() -> Self {
        let message =
            "this server keeps no files: files and batches need `setun serve --files DIR`";
        Self::new(StatusCode::NOT_FOUND, "files_disabled", message)
    }

    /// A file or a batch that the key does not have.
    pub(crate) fn not_kept(kind: &str, param: &str, id: &str) -> Self {
        let message = format!("{param}: there is no {kind} {}", excerpt(format_args!("{id:?}")));
        Self::new(StatusCode::NOT_FOUND, "not_found", message).at(param)
    }

    /// Something that is not possible as things are.
    pub(crate) fn conflict(message: impl Into<String>) -> Self {
        Self::new(StatusCode::CONFLICT, "conflict", message)
    }

    /// A limit of the folder, or a disk without room.
    pub(crate) fn storage_full(message: impl Into<String>) -> Self {
        Self::new(StatusCode::INSUFFICIENT_STORAGE, "storage_full", message)
    }

    /// What the disk refuses. The log has the reason, which may name paths.
    pub(crate) fn of_storage(error: &io::Error) -> Self {
        warn!(target: "setun_serve", %error, "a file could not be read or written");
        match error.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
                Self::storage_full("the disk of the server is full")
            }
            _ => {
                let message = "a file of the server could not be read or written: its log says why";
                Self::new(StatusCode::INTERNAL_SERVER_ERROR, "storage_error", message)
            }
        }
    }
}
