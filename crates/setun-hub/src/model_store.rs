//! Store of models on this machine, shared by processes.

use std::{collections::BTreeMap, path::PathBuf};

use crate::{
    atomic_files,
    discover::{DiscoveredModel, discover_hub_cache, in_hub_cache},
    error::Error,
    layout::{Layout, folders, remove_revision},
    lock::Lock,
    model_name::{self, ModelName, Source},
    options::PullOptions,
    settings::StoreSettings,
    stored_model::{DiskUsage, StoredModel},
};

/// The models of this machine. Nothing is kept open: processes may share it.
#[derive(Clone, Debug)]
pub struct ModelStore {
    pub(crate) settings: StoreSettings,
    pub(crate) layout: Layout,
}

impl ModelStore {
    /// A store, whose folder need not exist.
    #[must_use]
    pub fn open(settings: StoreSettings) -> Self {
        let layout = Layout { root: settings.root.clone() };
        Self { settings, layout }
    }

    /// Where it is, and how it reaches a hub.
    #[must_use]
    pub fn settings(&self) -> &StoreSettings {
        &self.settings
    }

    /// The models that are here whole, by name; revisions in the order of their pulls.
    ///
    /// # Errors
    ///
    /// If a folder or a manifest cannot be read.
    pub fn list(&self) -> Result<Vec<StoredModel>, Error> {
        let mut all = vec![];
        for (id, _) in self.layout.models()? {
            all.extend(self.layout.revisions(&id)?);
        }
        Ok(all)
    }

    /// What to open for a name: a folder, or a file in it. The store comes first, then the
    /// cache of Hugging Face's own tools.
    ///
    /// # Errors
    ///
    /// If there is no such model here, or several files could be meant.
    pub fn resolve(&self, name: &str) -> Result<PathBuf, Error> {
        let parsed = self.parse(name)?;
        let file = parsed.file.as_deref();
        if let Some(model) = self.find(&parsed)? {
            return model.path(file);
        }
        if let (Some(cache), Source::Hub { host: None, owner, name, revision }) =
            (&self.settings.hub_cache, &parsed.source)
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
    pub fn get(&self, name: &str) -> Result<StoredModel, Error> {
        self.find(&self.parse(name)?)?.ok_or_else(|| self.not_here(name))
    }

    /// Removes a model with all its revisions, or the one that is named, with what an unfinished
    /// pull has left. Returns the bytes that this has freed.
    ///
    /// # Errors
    ///
    /// If there is no such model, or its files cannot be removed.
    pub fn remove(&self, name: &str, options: &PullOptions) -> Result<u64, Error> {
        let parsed = self.parse(name)?;
        let (ids, revision) = self.ids(&parsed)?;
        let (mut freed, mut found) = (0, false);
        for id in ids {
            let _lock = Lock::take(&self.layout.lock(&id), options, &|_| ())?;
            let wanted = match &revision {
                Some(revision) => Some(self.folder_of(&id, revision)?),
                None => None,
            };
            let uses = self.layout.disk_usage()?;
            for folder in folders(&self.layout.model(&id))? {
                if wanted.as_ref().is_none_or(|wanted| *wanted == folder) {
                    let path = self.layout.model(&id).join(&folder);
                    let own = |used: &&DiskUsage| {
                        used.model == id.to_string()
                            && model_name::folder_name(&used.revision) == folder
                    };
                    freed += uses.iter().filter(own).map(|used| used.bytes).sum::<u64>();
                    remove_revision(&path)?;
                    found = true;
                }
            }
            if folders(&self.layout.model(&id))?.is_empty() {
                atomic_files::remove_file(&self.layout.model(&id).join("refs.json"))?;
                let _ = std::fs::remove_dir(self.layout.model(&id));
            }
        }
        if found { Ok(freed) } else { Err(self.not_here(name)) }
    }

    /// Gives a name another name: one word, which then stands for it. `None` takes the word back.
    ///
    /// # Errors
    ///
    /// If the word, or the name, is none; if the aliases cannot be written.
    pub fn alias(&self, alias: &str, name: Option<&str>) -> Result<(), Error> {
        let parsed = ModelName::parse(alias)?;
        if parsed.file.is_some() || !matches!(parsed.source, Source::Alias(_)) {
            let expected = "one word of letters, digits, `.`, `-` and `_`";
            return Err(Error::InvalidName { name: alias.into(), expected });
        }
        let _lock = Lock::take(&self.layout.alias_lock(), &PullOptions::default(), &|_| ())?;
        let mut aliases = self.layout.aliases()?;
        match name {
            Some(name) => {
                ModelName::parse(name)?;
                aliases.insert(alias.into(), name.into());
            }
            None if aliases.remove(alias).is_none() => return Err(self.not_here(alias)),
            None => {}
        }
        self.layout.write_aliases(aliases)
    }

    /// The aliases, and what each stands for.
    ///
    /// # Errors
    ///
    /// If they cannot be read.
    pub fn aliases(&self) -> Result<BTreeMap<String, String>, Error> {
        self.layout.aliases()
    }

    /// What each model takes on the disk, unfinished ones too.
    ///
    /// # Errors
    ///
    /// If a folder or a manifest cannot be read.
    pub fn disk_usage(&self) -> Result<Vec<DiskUsage>, Error> {
        self.layout.disk_usage()
    }

    /// Models in the cache of Hugging Face's own tools.
    #[must_use]
    pub fn discover_hub_cache(&self) -> Vec<DiscoveredModel> {
        self.settings.hub_cache.as_deref().map(discover_hub_cache).unwrap_or_default()
    }
}
