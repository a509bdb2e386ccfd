//! From a name to the model that it means.

use super::{
    ALIASES, DEFAULT_REVISION, Registry, RegistryError, StoredModel,
    name::{ModelId, ModelName, Place, folder_name},
};

impl Registry {
    /// Takes a name apart, and puts what an alias stands for in its place.
    pub(super) fn parse(&self, name: &str) -> Result<ModelName, RegistryError> {
        let mut parsed = ModelName::parse(name)?;
        for _ in 0..ALIASES {
            let Place::Alias(alias) = &parsed.place else { return Ok(parsed) };
            let aliases = self.store.aliases()?;
            let Some(target) = aliases.get(alias) else { return Ok(parsed) };
            let file = parsed.file.take();
            parsed = ModelName::parse(target)?;
            parsed.file = file.or(parsed.file);
        }
        let expected = "an alias that ends in a model";
        Err(RegistryError::BadName { name: name.into(), expected })
    }

    /// The models that a name can mean, and the revision that it names.
    pub(super) fn ids(
        &self,
        name: &ModelName,
    ) -> Result<(Vec<ModelId>, Option<String>), RegistryError> {
        let (host, owner, name, revision) = match &name.place {
            Place::Address(address) => return Ok((vec![ModelId::of_address(address)], None)),
            Place::Alias(_) => return Ok((vec![], None)),
            Place::Hub { host, owner, name, revision } => (host, owner, name, revision.clone()),
        };
        if let Some(host) = host {
            let id = ModelId { host: host.clone(), owner: owner.clone(), name: name.clone() };
            return Ok((vec![id], revision));
        }
        // The endpoint's own comes first; one that another hub gave is found without naming it.
        let own = ModelId::of_hub(&self.settings.endpoint, owner, name);
        if self.store.model(&own).is_dir() {
            return Ok((vec![own], revision));
        }
        let mut others = vec![];
        for (id, _) in self.store.models()? {
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
                Err(RegistryError::Several { name, models: files })
            }
        }
    }

    /// The model that a name means, if it is here whole.
    pub(super) fn find(&self, name: &ModelName) -> Result<Option<StoredModel>, RegistryError> {
        let (ids, revision) = self.ids(name)?;
        for id in ids {
            let found = match &revision {
                Some(revision) => {
                    let folder = self.folder_of(&id, revision)?;
                    self.store.whole(&id, &folder)?
                }
                None => self.current(&id)?,
            };
            if found.is_some() {
                return Ok(found);
            }
        }
        Ok(None)
    }

    /// The revision that is meant where none is named: what the hub meant at the last pull, or
    /// the one pulled last.
    fn current(&self, id: &ModelId) -> Result<Option<StoredModel>, RegistryError> {
        if let Some(commit) = self.store.reference(id, DEFAULT_REVISION)?
            && let Some(model) = self.store.whole(id, &commit)?
        {
            return Ok(Some(model));
        }
        Ok(self.store.revisions(id)?.pop())
    }

    /// The folder's name of a revision, which may be named by a branch.
    pub(super) fn folder_of(&self, id: &ModelId, revision: &str) -> Result<String, RegistryError> {
        let commit = self.store.reference(id, revision)?;
        Ok(folder_name(commit.as_deref().unwrap_or(revision)))
    }

    pub(super) fn not_here(&self, name: &str) -> RegistryError {
        let hint = match ModelName::parse(name).map(|parsed| parsed.place) {
            Ok(Place::Alias(_)) => "no alias has this name".to_owned(),
            _ => format!("`setun models pull {name}` brings it"),
        };
        RegistryError::NotHere { name: name.into(), root: self.settings.root.clone(), hint }
    }
}
