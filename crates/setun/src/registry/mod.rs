//! Models on this machine: pulled over the network, verified, found by name.
//!
//! ```no_run
//! use setun::registry::{PullOptions, Registry, RegistrySettings};
//!
//! let registry = Registry::open(RegistrySettings::from_env());
//! registry.pull("microsoft/bitnet-b1.58-2B-4T", &PullOptions::new(), &|event| {
//!     eprintln!("{event:?}");
//! })?;
//! let model = setun::Model::open(registry.resolve("microsoft/bitnet-b1.58-2B-4T")?)?;
//! # Ok::<(), setun::Error>(())
//! ```
//!
//! `docs/hub.md` has the folders and files, which a browser's store shares, and what a pull
//! promises.

mod address;
mod choice;
mod digest;
mod discover;
mod download;
mod error;
mod files;
mod find;
mod folder;
mod http;
mod hub;
mod journal;
mod lock;
mod manifest;
mod name;
mod options;
mod plan;
mod probe;
mod pull;
mod retry;
mod settings;
mod store;
mod verify;

use std::{collections::BTreeMap, path::PathBuf};

pub use digest::Digest;
pub use discover::{FoundModel, discover};
pub use error::RegistryError;
pub use manifest::{FileEntry, Manifest};
pub use name::ModelId;
pub use options::{Listener, PullEvent, PullOptions};
pub use settings::RegistrySettings;
pub use store::{DiskUse, StoredModel};
pub use verify::FileCheck;

use discover::{discover_hub_cache, in_hub_cache};
use hub::DEFAULT_REVISION;
use lock::Lock;
use name::{ModelName, Place};
use pull::remove_revision;
use store::{Store, folders};

/// The longest chain of aliases.
const ALIASES: usize = 8;

/// The models of this machine. Nothing is kept open: processes may share it.
#[derive(Clone, Debug)]
pub struct Registry {
    settings: RegistrySettings,
    store: Store,
}

impl Registry {
    /// A registry, whose folder need not exist.
    #[must_use]
    pub fn open(settings: RegistrySettings) -> Self {
        let store = Store { root: settings.root.clone() };
        Self { settings, store }
    }

    /// Where it is, and how it reaches a hub.
    #[must_use]
    pub fn settings(&self) -> &RegistrySettings {
        &self.settings
    }

    /// The models that are here whole, by name; revisions in the order of their pulls.
    ///
    /// # Errors
    ///
    /// If a folder or a manifest cannot be read.
    pub fn list(&self) -> Result<Vec<StoredModel>, RegistryError> {
        let mut all = vec![];
        for (id, _) in self.store.models()? {
            all.extend(self.store.revisions(&id)?);
        }
        Ok(all)
    }

    /// What to open for a name: a folder, or a file in it. The registry comes first, then the
    /// cache of Hugging Face's own tools.
    ///
    /// # Errors
    ///
    /// If there is no such model here, or several files could be meant.
    pub fn resolve(&self, name: &str) -> Result<PathBuf, RegistryError> {
        let parsed = self.parse(name)?;
        let file = parsed.file.as_deref();
        if let Some(model) = self.find(&parsed)? {
            return model.path(file);
        }
        if let (Some(cache), Place::Hub { host: None, owner, name, revision }) =
            (&self.settings.hub_cache, &parsed.place)
            && let Some(found) = in_hub_cache(cache, owner, name, revision.as_deref(), file)
        {
            return Ok(found.path);
        }
        Err(self.not_here(name))
    }

    /// A model that is here whole.
    ///
    /// # Errors
    ///
    /// If it is not.
    pub fn get(&self, name: &str) -> Result<StoredModel, RegistryError> {
        self.find(&self.parse(name)?)?.ok_or_else(|| self.not_here(name))
    }

    /// Removes a model with all its revisions, or the one that is named, with what an unfinished
    /// pull has left. Returns the bytes that this has freed.
    ///
    /// # Errors
    ///
    /// If there is no such model, or its files cannot be removed.
    pub fn remove(&self, name: &str, options: &PullOptions) -> Result<u64, RegistryError> {
        let parsed = self.parse(name)?;
        let (ids, revision) = self.ids(&parsed)?;
        let (mut freed, mut found) = (0, false);
        for id in ids {
            let _lock = Lock::take(&self.store.lock(&id), options, &|_| ())?;
            let wanted = match &revision {
                Some(revision) => Some(self.folder_of(&id, revision)?),
                None => None,
            };
            let uses = self.store.disk_use()?;
            for folder in folders(&self.store.model(&id))? {
                if wanted.as_ref().is_none_or(|wanted| *wanted == folder) {
                    let path = self.store.model(&id).join(&folder);
                    let own = |used: &&DiskUse| {
                        used.model == id.to_string() && name::folder_name(&used.revision) == folder
                    };
                    freed += uses.iter().filter(own).map(|used| used.bytes).sum::<u64>();
                    remove_revision(&path)?;
                    found = true;
                }
            }
            if folders(&self.store.model(&id))?.is_empty() {
                files::remove_file(&self.store.model(&id).join("refs.json"))?;
                let _ = std::fs::remove_dir(self.store.model(&id));
            }
        }
        if found { Ok(freed) } else { Err(self.not_here(name)) }
    }

    /// Gives a name another name: one word, which then stands for it. `None` takes the word back.
    ///
    /// # Errors
    ///
    /// If the word, or the name, is none; if the aliases cannot be written.
    pub fn alias(&self, alias: &str, name: Option<&str>) -> Result<(), RegistryError> {
        let parsed = ModelName::parse(alias)?;
        if parsed.file.is_some() || !matches!(parsed.place, Place::Alias(_)) {
            let expected = "one word of letters, digits, `.`, `-` and `_`";
            return Err(RegistryError::BadName { name: alias.into(), expected });
        }
        let _lock = Lock::take(&self.store.alias_lock(), &PullOptions::new(), &|_| ())?;
        let mut aliases = self.store.aliases()?;
        match name {
            Some(name) => {
                ModelName::parse(name)?;
                aliases.insert(alias.into(), name.into());
            }
            None if aliases.remove(alias).is_none() => return Err(self.not_here(alias)),
            None => {}
        }
        self.store.write_aliases(aliases)
    }

    /// The aliases, and what each stands for.
    ///
    /// # Errors
    ///
    /// If they cannot be read.
    pub fn aliases(&self) -> Result<BTreeMap<String, String>, RegistryError> {
        self.store.aliases()
    }

    /// What each model takes on the disk, unfinished ones too.
    ///
    /// # Errors
    ///
    /// If a folder or a manifest cannot be read.
    pub fn disk_use(&self) -> Result<Vec<DiskUse>, RegistryError> {
        self.store.disk_use()
    }

    /// Models in the cache of Hugging Face's own tools.
    #[must_use]
    pub fn discover_hub_cache(&self) -> Vec<FoundModel> {
        self.settings.hub_cache.as_deref().map(discover_hub_cache).unwrap_or_default()
    }
}
