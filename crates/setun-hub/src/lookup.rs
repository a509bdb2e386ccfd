//! Lookup of a stored model by its name.

use crate::{
    catalog::{self, CatalogEntry},
    error::Error,
    hub_source::DEFAULT_REVISION,
    model_name::{ModelId, ModelName, Source, folder_name},
    model_store::ModelStore,
    small_files::SmallFile,
    stored_model::{DamagedRevision, StoredModel, StoredRevision},
};

/// The longest chain of aliases.
const MAX_ALIASES: usize = 8;

impl ModelStore {
    /// Takes a name apart, and puts what an alias or a short name of the catalog stands for in its
    /// place. An alias comes first.
    pub(crate) fn parse(&self, name: &str) -> Result<ModelName, Error> {
        let mut parsed = ModelName::parse(name)?;
        for _ in 0..MAX_ALIASES {
            let Source::Alias(alias) = &parsed.source else { return Ok(parsed) };
            let listed = || catalog::find(alias).map(CatalogEntry::source);
            let target = self.layout.aliases()?.remove(alias).or_else(listed);
            let Some(target) = target else { return Ok(parsed) };
            let file = parsed.file.take();
            parsed = ModelName::parse(&target)?;
            parsed.file = file.or(parsed.file);
        }
        let expected = "an alias that ends in a model";
        Err(Error::InvalidName { name: name.into(), expected })
    }

    /// The models that a name can mean, and the revision that it names.
    pub(crate) fn ids(&self, name: &ModelName) -> Result<(Vec<ModelId>, Option<String>), Error> {
        let (host, owner, name, revision) = match &name.source {
            Source::Address(address) => return Ok((vec![ModelId::of_address(address)], None)),
            Source::Alias(_) => return Ok((vec![], None)),
            Source::Hub { host, owner, name, revision } => (host, owner, name, revision.clone()),
        };
        if let Some(host) = host {
            let id = ModelId { host: host.clone(), owner: owner.clone(), name: name.clone() };
            return Ok((vec![id], revision));
        }
        // The endpoint's own comes first; one that another hub gave is found without naming it.
        let own = ModelId::of_hub(&self.settings.endpoint, owner, name);
        if self.layout.model(&own).is_dir() {
            return Ok((vec![own], revision));
        }
        let mut others = vec![];
        for (id, _) in self.layout.models()? {
            if id.owner == *owner && id.name == *name {
                others.push(id);
            }
        }
        match others.len() {
            0 => Ok((vec![own], revision)),
            1 => Ok((others, revision)),
            _ => {
                let name = format!("{owner}/{name}");
                let files = others.iter().map(ToString::to_string).collect();
                Err(Error::AmbiguousHub { name, models: files })
            }
        }
    }

    /// What is here of the model that a name means.
    pub(crate) fn find(&self, name: &ModelName) -> Result<StoredRevision, Error> {
        let (ids, revision) = self.ids(name)?;
        for id in ids {
            let found = match &revision {
                Some(revision) => self.layout.look(&id, &self.folder_of(&id, revision)?)?,
                None => self.current(&id)?,
            };
            if !matches!(found, StoredRevision::Absent) {
                return Ok(found);
            }
        }
        Ok(StoredRevision::Absent)
    }

    /// The revision that is meant where none is named: what the hub meant at the last pull, or
    /// the one pulled last. An older one never takes the place of a damaged one.
    fn current(&self, id: &ModelId) -> Result<StoredRevision, Error> {
        if let Some(commit) = self.layout.reference(id, DEFAULT_REVISION)? {
            match self.layout.look(id, &commit)? {
                StoredRevision::Absent => {} // it was removed
                found => return Ok(found),
            }
        }
        Ok(self.layout.revisions(id)?.pop().unwrap_or(StoredRevision::Absent))
    }

    /// The error for a model that is here and damaged. It names another revision that is whole,
    /// for a machine without a connection.
    pub(crate) fn damaged_error(&self, name: &str, damaged: DamagedRevision) -> Error {
        let DamagedRevision { folder, reason, .. } = damaged;
        let other = self.other_revision(name).map_or_else(String::new, |model| {
            let revision = &model.manifest.revision;
            format!("; the revision {revision} is whole: `{}`", model.folder.display())
        });
        Error::Damaged { name: name.into(), folder, reason, other }
    }

    /// The revision pulled last of those that are whole.
    fn other_revision(&self, name: &str) -> Option<StoredModel> {
        let (ids, _) = self.ids(&self.parse(name).ok()?).ok()?;
        let revisions = self.layout.revisions(ids.first()?).ok()?;
        revisions.into_iter().rev().find_map(StoredRevision::whole)
    }

    /// The folder's name of a revision, which may be named by a branch.
    pub(crate) fn folder_of(&self, id: &ModelId, revision: &str) -> Result<String, Error> {
        let commit = self.layout.reference(id, revision)?;
        Ok(folder_name(commit.as_deref().unwrap_or(revision)))
    }

    pub(crate) fn not_here(&self, name: &str) -> Error {
        let (hint, can_pull) = match ModelName::parse(name).map(|parsed| parsed.source) {
            Ok(Source::Alias(alias)) => self.alias_hint(name, &alias),
            _ => (self.pull_hint(name), true),
        };
        Error::NotFound { name: name.into(), root: self.settings.root.clone(), hint, can_pull }
    }

    /// Advice for a name that can be pulled.
    fn pull_hint(&self, name: &str) -> String {
        let pull = format!("`setun models pull {name}` pulls it");
        match self.suggest(name).filter(|known| known != name) {
            Some(known) => format!("did you mean `{known}`? If not, {pull}"),
            None => pull,
        }
    }

    /// Advice for a name of one word, and whether it can be pulled.
    fn alias_hint(&self, name: &str, alias: &str) -> (String, bool) {
        let none = "no alias and no model of the catalog has this name";
        let aliases = match self.layout.look_for_aliases() {
            Ok(SmallFile::Damaged(reason)) => {
                return (format!("{none}: the aliases are damaged: {reason}"), false);
            }
            Err(error) => return (format!("{none}: {error}"), false),
            Ok(aliases) => aliases.found().unwrap_or_default(),
        };
        if let Some(target) = aliases.get(alias) {
            let hint = format!("it stands for `{target}`; `setun models pull {name}` pulls that");
            return (hint, true);
        }
        if let Some(entry) = catalog::find(alias) {
            return (format!("`setun models pull {name}` pulls {}", entry.repository), true);
        }
        let hint = match self.suggest(alias) {
            Some(known) => format!("{none}; did you mean `{known}`?"),
            None => format!("{none}; `setun models search` lists the catalog"),
        };
        (hint, false)
    }
}
