//! What a pull is to bring.

use std::fmt::Write;

use super::{address::escape, digest::Digest, name::ModelId, retry::Fault};

/// What a pull is to bring.
#[derive(Debug)]
pub(super) struct Plan {
    pub(super) id: ModelId,
    /// A commit, or what the files were known by.
    pub(super) revision: String,
    /// The name of the revision that was asked for, if it may be another commit later.
    pub(super) reference: Option<String>,
    /// Where it comes from.
    pub(super) source: String,
    pub(super) licence: Option<String>,
    pub(super) files: Vec<Wanted>,
}

/// A file that is to come.
#[derive(Clone, Debug)]
pub(super) struct Wanted {
    pub(super) name: String,
    pub(super) address: String,
    /// As a list told it.
    pub(super) bytes: Option<u64>,
    pub(super) sha256: Option<Digest>,
    /// What the server knew it by when the plan was made: it must still be that.
    pub(super) identity: Option<String>,
    /// Bytes and hashes of its chunks, where they were told.
    pub(super) chunks: Option<(u64, Vec<Digest>)>,
}

impl Plan {
    /// Bytes of all files, as far as they were told.
    pub(super) fn bytes(&self) -> u64 {
        self.files.iter().filter_map(|file| file.bytes).fold(0, u64::saturating_add)
    }

    /// A name for the files of an address, which has no commits.
    pub(super) fn revision_of(files: &[Wanted]) -> String {
        let mut text = String::new();
        for Wanted { name, bytes, sha256, identity, .. } in files {
            let _ = writeln!(text, "{name}\0{bytes:?}\0{sha256:?}\0{identity:?}");
        }
        Digest::of(text.as_bytes()).hex()[..16].to_owned()
    }
}

/// The address of a hub's file.
pub(super) fn hub_file(
    endpoint: &str,
    owner: &str,
    name: &str,
    revision: &str,
    file: &str,
) -> String {
    let revision = escape(revision).replace('/', "%2F");
    format!("{endpoint}/{owner}/{name}/resolve/{revision}/{}", escape(file))
}

/// True for the full name of a commit, which never is another.
pub(super) fn is_commit(revision: &str) -> bool {
    revision.len() == 40 && revision.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// What stops a pull, and what lets it be planned anew.
pub(super) type Pulled<T> = Result<T, Fault>;
