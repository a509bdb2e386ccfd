//! Plan of a pull: the files to download.

use std::fmt::Write;

use crate::{digest::Digest, model_name::ModelId, retry::Fault, url::escape};

/// What a pull is to bring.
#[derive(Debug)]
pub(crate) struct Plan {
    pub(crate) id: ModelId,
    /// A commit, or what the files were known by.
    pub(crate) revision: String,
    /// The name of the revision that was requested, if it may be another commit later.
    pub(crate) reference: Option<String>,
    /// Where it comes from.
    pub(crate) source: String,
    pub(crate) licence: Option<String>,
    pub(crate) files: Vec<PlannedFile>,
}

/// A file that is to come.
#[derive(Clone, Debug)]
pub(crate) struct PlannedFile {
    pub(crate) name: String,
    pub(crate) address: String,
    /// From a list of files.
    pub(crate) bytes: Option<u64>,
    pub(crate) sha256: Option<Digest>,
    /// What the server knew it by when the plan was made: it must still be that.
    pub(crate) identity: Option<String>,
    /// Bytes and hashes of its chunks, where the source reports them.
    pub(crate) chunks: Option<(u64, Vec<Digest>)>,
}

impl Plan {
    /// Bytes of all files whose sizes are known.
    pub(crate) fn bytes(&self) -> u64 {
        self.files.iter().filter_map(|file| file.bytes).fold(0, u64::saturating_add)
    }

    /// A name for the files of an address, which has no commits.
    pub(crate) fn revision_of(files: &[PlannedFile]) -> String {
        let mut text = String::new();
        for PlannedFile { name, bytes, sha256, identity, .. } in files {
            let _ = writeln!(text, "{name}\0{bytes:?}\0{sha256:?}\0{identity:?}");
        }
        Digest::of(text.as_bytes()).hex()[..16].to_owned()
    }
}

/// The address of a hub's file.
pub(crate) fn hub_file(
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
pub(crate) fn is_commit(revision: &str) -> bool {
    revision.len() == 40 && revision.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// What stops a pull, and what lets it be planned anew.
pub(crate) type PullResult<T> = Result<T, Fault>;
