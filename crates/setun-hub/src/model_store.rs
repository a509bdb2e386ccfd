//! Store of models on this machine, shared by processes.

use std::{collections::BTreeMap, path::PathBuf};

use crate::{
    atomic_files::{folder_bytes, remove_any},
    discover::{DiscoveredModel, discover_hub_cache, in_hub_cache},
    error::Error,
    layout::{Layout, folders, remove_revision},
    lock::Lock,
    model_name::{ModelName, Source},
    options::{ProgressListener, PullOptions},
    settings::StoreSettings,
    stored_model::{DiskUsage, StoredModel, StoredRevision},
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
    /// [`survey`](Self::survey) has the damaged ones as well.
    ///
    /// # Errors
    ///
    /// If the store's own folder cannot be read.
    pub fn list(&self) -> Result<Vec<StoredModel>, Error> {
        Ok(self.survey()?.models)
    }

    /// What to open for a name: a folder, or a file in it. The store comes first, then the
    /// cache of Hugging Face's own tools.
    ///
    /// # Errors
    ///
    /// If there is no such model here, it is damaged, or several files could be meant.
    pub fn resolve(&self, name: &str) -> Result<PathBuf, Error> {
        let parsed = self.parse(name)?;
        let file = parsed.file.as_deref();
        match self.find(&parsed)? {
            StoredRevision::Whole(model) => return model.path(file),
            StoredRevision::Damaged(damaged) => return Err(self.damaged_error(name, damaged)),
            StoredRevision::Absent => {}
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
        match self.find(&self.parse(name)?)? {
            StoredRevision::Whole(model) => Ok(model),
            StoredRevision::Damaged(damaged) => Err(self.damaged_error(name, damaged)),
            StoredRevision::Absent => Err(self.not_here(name)),
        }
    }

    /// Removes a model with all its revisions, or the one that is named, with what an unfinished
    /// pull has left. Nothing of it has to be readable. `listener` hears where another process is
    /// waited for. Returns the bytes that this has freed.
    ///
    /// # Errors
    ///
    /// If there is no such model, or its files cannot be removed.
    pub fn remove(
        &self,
        name: &str,
        options: &PullOptions,
        listener: ProgressListener<'_>,
    ) -> Result<u64, Error> {
        let parsed = self.parse(name)?;
        let (ids, revision) = self.ids(&parsed)?;
        let (mut freed, mut found) = (0, false);
        for id in ids {
            let _lock = Lock::take(&self.layout.lock(&id), options, listener)?;
            let model = self.layout.model(&id);
            let wanted = revision.as_ref().map(|revision| self.layout.folder_of(&id, revision));
            let before = folders(&model)?;
            let revisions =
                before.iter().filter(|found| wanted.as_ref().is_none_or(|wanted| wanted == *found));
            for folder in revisions {
                freed += folder_bytes(&model.join(folder));
                remove_revision(&model.join(folder))?;
                found = true;
            }
            if folders(&model)?.is_empty() {
                found |= wanted.is_none() && model.is_dir();
                remove_any(&model)?; // with what a removal that was killed has left
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
    /// If they have a later format, or cannot be read. A damaged file counts as absent.
    pub fn aliases(&self) -> Result<BTreeMap<String, String>, Error> {
        self.layout.aliases()
    }

    /// What each model takes on the disk, unfinished ones too.
    ///
    /// # Errors
    ///
    /// If the store's own folder cannot be read.
    pub fn disk_usage(&self) -> Result<Vec<DiskUsage>, Error> {
        self.layout.disk_usage()
    }

    /// Models in the cache of Hugging Face's own tools.
    #[must_use]
    pub fn discover_hub_cache(&self) -> Vec<DiscoveredModel> {
        self.settings.hub_cache.as_deref().map(discover_hub_cache).unwrap_or_default()
    }
}
