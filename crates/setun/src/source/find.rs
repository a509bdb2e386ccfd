//! Names of models and the paths that they mean.

use std::path::{Path, PathBuf};

use super::locate::nothing_at;
#[cfg(feature = "hub")]
use super::locate::surroundings;
use crate::error::Error;

/// A model that is on this machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FoundModel {
    /// Its file or folder.
    pub path: PathBuf,
    /// The name in reports: that in the store, or that of its file or folder.
    pub name: String,
    /// Whether it was found in the store, or in the cache of Hugging Face's tools.
    pub is_stored: bool,
}

/// The model that a name means: a path, or with the feature `hub` an alias, a short name of the
/// catalog, `owner/name` or an address that was pulled. A path that is there comes first. The store
/// is the one that the environment names.
///
/// # Errors
///
/// If there is no such model, with the places that were searched and what to do.
pub fn find_model(name: impl AsRef<Path>) -> Result<FoundModel, Error> {
    let path = name.as_ref();
    if path.exists() {
        return Ok(at(path));
    }
    #[cfg(feature = "hub")]
    if let Some(name) = path.to_str() {
        let store = setun_hub::ModelStore::open(setun_hub::StoreSettings::from_env());
        return find_stored(&store, name);
    }
    Err(match nothing_at(path) {
        #[cfg(not(feature = "hub"))]
        Error::NoModel { path, expected, found } => {
            let found = format!("{found}; names of pulled models need the cargo feature `hub`");
            Error::NoModel { path, expected, found }
        }
        error => error,
    })
}

/// A model by its path, which exists.
fn at(path: &Path) -> FoundModel {
    let whole = path.canonicalize().unwrap_or_else(|_| path.into());
    let name = whole.file_name().unwrap_or(whole.as_os_str()).to_string_lossy().into_owned();
    FoundModel { path: path.into(), name, is_stored: false }
}

/// A model of the store. The name is none of a path that exists.
#[cfg(feature = "hub")]
fn find_stored(store: &setun_hub::ModelStore, name: &str) -> Result<FoundModel, Error> {
    use setun_hub::Error as HubError;
    match store.resolve(name) {
        // A folder of the store is named after its revision.
        Ok(path) => {
            let name = name.strip_prefix("hf:").unwrap_or(name).to_owned();
            Ok(FoundModel { path, name, is_stored: true })
        }
        Err(HubError::NotFound { root, hint, can_pull, .. }) => {
            let beside = surroundings(Path::new(name));
            let searched = format!(
                "there is no such file or folder ({beside}), nor such a model in the store at `{}`",
                root.display()
            );
            Err(Error::UnknownModel { name: name.into(), searched, hint, can_pull })
        }
        // It was meant as a path: what is there instead says more.
        Err(HubError::InvalidName { .. }) if !name.starts_with("hf:") && !name.contains("://") => {
            Err(nothing_at(Path::new(name)))
        }
        Err(error) => Err(error.into()),
    }
}
