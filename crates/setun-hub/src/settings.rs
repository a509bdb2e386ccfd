//! Location of the store, and settings of its network access.

use std::{
    env, fmt,
    path::{Path, PathBuf},
};

/// The hub that is asked unless another is named.
const ENDPOINT: &str = "https://huggingface.co";

/// Where a [`ModelStore`](super::ModelStore) is, and how it reaches a hub.
#[derive(Clone, PartialEq, Eq)]
pub struct StoreSettings {
    /// The folder of the store. It is made when something is written to it.
    pub root: PathBuf,
    /// The hub's address.
    pub endpoint: String,
    /// What proves to the hub who asks. It goes to the endpoint's own host and port, and nowhere else.
    pub token: Option<String>,
    /// What switches the network off, for messages: the name of a variable.
    pub offline: Option<&'static str>,
    /// The cache of Hugging Face's own tools, which is only read.
    pub hub_cache: Option<PathBuf>,
    /// A file of certificates (PEM) to trust in place of Mozilla's list, as behind a proxy that
    /// reads along.
    pub certificates: Option<PathBuf>,
}

/// The token is a secret.
impl fmt::Debug for StoreSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { root, endpoint, token, offline, hub_cache, certificates } = self;
        let mut text = f.debug_struct("StoreSettings");
        text.field("root", root).field("endpoint", endpoint).field("token", &token.is_some());
        text.field("offline", offline).field("hub_cache", hub_cache);
        text.field("certificates", certificates).finish()
    }
}

impl StoreSettings {
    /// A store in a folder, with the public hub.
    #[must_use]
    pub fn new(root: impl Into<PathBuf>) -> Self {
        let (root, endpoint) = (root.into(), ENDPOINT.to_owned());
        Self { root, endpoint, token: None, offline: None, hub_cache: None, certificates: None }
    }

    /// As the environment says: `SETUN_HOME`, or else the system's folder for data;
    /// `HF_ENDPOINT`, `HF_TOKEN`, `HF_HUB_OFFLINE` or `SETUN_OFFLINE`, and `HF_HUB_CACHE` or
    /// `HF_HOME`, and `SSL_CERT_FILE`.
    #[must_use]
    pub fn from_env() -> Self {
        let mut settings = Self::new(root());
        if let Some(endpoint) = text("HF_ENDPOINT") {
            endpoint.trim_end_matches('/').clone_into(&mut settings.endpoint);
        }
        settings.token = text("HF_TOKEN");
        settings.offline = ["SETUN_OFFLINE", "HF_HUB_OFFLINE"].into_iter().find(|name| is_on(name));
        settings.hub_cache = hub_cache();
        settings.certificates = path("SSL_CERT_FILE");
        settings
    }
}

fn root() -> PathBuf {
    if let Some(root) = path("SETUN_HOME") {
        return root;
    }
    let home = home();
    let data = if cfg!(windows) {
        path("LOCALAPPDATA").unwrap_or_else(|| home.join("AppData").join("Local"))
    } else if cfg!(target_os = "macos") {
        home.join("Library").join("Application Support")
    } else {
        absolute("XDG_DATA_HOME").unwrap_or_else(|| home.join(".local").join("share"))
    };
    data.join("setun")
}

fn hub_cache() -> Option<PathBuf> {
    let in_home = || {
        let home = path("HF_HOME");
        let home = home.or_else(|| Some(absolute("XDG_CACHE_HOME")?.join("huggingface")));
        home.unwrap_or_else(|| home_cache().join("huggingface")).join("hub")
    };
    Some(path("HF_HUB_CACHE").unwrap_or_else(in_home)).filter(|folder| folder.is_dir())
}

/// Hugging Face's tools use this folder on every system.
fn home_cache() -> PathBuf {
    home().join(".cache")
}

fn home() -> PathBuf {
    env::home_dir().unwrap_or_else(|| Path::new(".").to_owned())
}

fn text(name: &str) -> Option<String> {
    env::var(name).ok().map(|text| text.trim().to_owned()).filter(|text| !text.is_empty())
}

fn path(name: &str) -> Option<PathBuf> {
    env::var_os(name).filter(|path| !path.is_empty()).map(PathBuf::from)
}

/// The specification of these variables says to ignore a relative path.
fn absolute(name: &str) -> Option<PathBuf> {
    path(name).filter(|path| path.is_absolute())
}

fn is_on(name: &str) -> bool {
    let value = text(name).map(|text| text.to_ascii_uppercase());
    value.is_some_and(|value| ["1", "TRUE", "YES", "ON"].contains(&value.as_str()))
}
