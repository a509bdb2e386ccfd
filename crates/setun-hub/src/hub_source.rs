//! Hub repository as the source of a pull: its file list.

use std::time::Duration;

use serde::Deserialize;

use crate::{
    digest::Digest,
    error::Error,
    file_selection::choose,
    http::{Http, network},
    json,
    model_name::ModelId,
    options::PullOptions,
    pull_plan::{Plan, PlannedFile, hub_file, is_commit},
    url::escape,
};

/// Most bytes of a list.
const MAX_BYTES: u64 = 32 << 20;

/// The revision that is meant where none is named.
pub(crate) const DEFAULT_REVISION: &str = "main";

/// A repository of a hub.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Repository<'a> {
    pub(crate) endpoint: &'a str,
    pub(crate) owner: &'a str,
    pub(crate) name: &'a str,
    pub(crate) revision: &'a str,
    /// The file of it that is meant.
    pub(crate) file: Option<&'a str>,
}

#[derive(Deserialize)]
struct RepositoryInfo {
    sha: String,
    #[serde(default)]
    siblings: Vec<Sibling>,
    #[serde(default, rename = "cardData")]
    card: Option<serde_json::Value>,
}

#[derive(Deserialize)]
struct Sibling {
    rfilename: String,
    size: Option<u64>,
    lfs: Option<Lfs>,
}

/// What the hub reports of a large file.
#[derive(Deserialize)]
struct Lfs {
    sha256: Option<String>,
    oid: Option<String>,
    size: Option<u64>,
}

impl Lfs {
    fn digest(&self) -> Option<Digest> {
        let text = self.sha256.as_ref().or(self.oid.as_ref())?;
        Digest::parse(text.strip_prefix("sha256:").unwrap_or(text))
    }
}

/// Asks a hub what a repository has, and chooses what is a model.
pub(crate) fn plan(
    http: &Http,
    repository: Repository<'_>,
    options: &PullOptions,
    on_retry: &dyn Fn(String, Duration),
) -> Result<Plan, Error> {
    let Repository { endpoint, owner, name, revision, file } = repository;
    let escaped = escape(revision).replace('/', "%2F");
    let list = format!("{endpoint}/api/models/{owner}/{name}/revision/{escaped}?blobs=true");
    let bytes = http.small(&list, MAX_BYTES, options, on_retry)?.ok_or_else(|| Error::NoModel {
        address: format!("{endpoint}/{owner}/{name}"),
        expected: "a repository with this name and revision",
        found: format!("no repository, or no revision `{revision}` of it"),
    })?;
    let answer: RepositoryInfo = json::read(&bytes)
        .map_err(|error| network(&list, format!("the hub's list cannot be read: {error}")))?;
    if !is_commit(&answer.sha) {
        return Err(network(&list, format!("the hub named the commit `{}`", answer.sha)));
    }
    let source = format!("{endpoint}/{owner}/{name}");
    let names: Vec<_> = answer.siblings.iter().map(|sibling| sibling.rfilename.clone()).collect();
    let choice = choose(&format!("{owner}/{name}"), &source, &names, file)?;
    let wanted = |chosen: &str| {
        let sibling = answer.siblings.iter().find(|sibling| sibling.rfilename == chosen);
        let lfs = sibling.and_then(|sibling| sibling.lfs.as_ref());
        PlannedFile {
            name: chosen.to_owned(),
            address: hub_file(endpoint, owner, name, &answer.sha, chosen),
            bytes: lfs.and_then(|lfs| lfs.size).or(sibling.and_then(|sibling| sibling.size)),
            sha256: lfs.and_then(Lfs::digest),
            identity: None,
            chunks: None,
        }
    };
    // Small files first: what is wrong with them shows before much has been pulled.
    let files = choice.beside.iter().chain(&choice.weights).map(|name| wanted(name)).collect();
    let licence = answer.card.as_ref().and_then(|card| card["license"].as_str()).map(str::to_owned);
    Ok(Plan {
        id: ModelId::of_hub(endpoint, owner, name),
        reference: (revision != answer.sha).then(|| revision.to_owned()),
        revision: answer.sha.clone(),
        source,
        licence,
        files,
    })
}
