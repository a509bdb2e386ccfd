//! Identity of a file, whatever its path.

use std::path::Path;

/// Two paths of the same file have the same.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Identity(Kind);

#[cfg(unix)]
type Kind = (u64, u64); // device and number

#[cfg(not(unix))]
type Kind = std::path::PathBuf; // without links

impl Identity {
    /// Of the file or folder at a path; none where there is nothing.
    #[cfg(unix)]
    pub(crate) fn of(path: &Path) -> Option<Self> {
        path.metadata().ok().map(|found| Self::of_metadata(&found))
    }

    #[cfg(unix)]
    pub(super) fn of_metadata(found: &std::fs::Metadata) -> Self {
        use std::os::unix::fs::MetadataExt;
        Self((found.dev(), found.ino()))
    }

    /// Of the file or folder at a path; none where there is nothing.
    #[cfg(not(unix))]
    pub(crate) fn of(path: &Path) -> Option<Self> {
        path.canonicalize().ok().map(Self)
    }
}
