//! Survey of the store: the models that are here whole, and those that are damaged.

use std::path::PathBuf;

use serde::Serialize;

use crate::{
    error::Error,
    layout::{Layout, Unreadable},
    model_name::ModelId,
    model_store::ModelStore,
    small_files::SmallFile,
    stored_model::{StoredModel, StoredRevision},
};

/// What there is in a store.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Survey {
    /// The models that are here whole, by name; revisions in the order of their pulls.
    pub models: Vec<StoredModel>,
    /// Those that were, and what else cannot be read. Unfinished pulls are not among them.
    pub damaged: Vec<DamagedModel>,
}

/// A model that is damaged, or a file of the store.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct DamagedModel {
    /// The model; none where it is a file for all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Its folder, or the file.
    pub path: PathBuf,
    /// What is wrong.
    pub reason: String,
}

impl ModelStore {
    /// Looks at all models. Damage of one does not hide the others.
    ///
    /// # Errors
    ///
    /// If the store's own folder cannot be read.
    pub fn survey(&self) -> Result<Survey, Error> {
        let (mut survey, mut unreadable) = (Survey::default(), vec![]);
        for (id, revisions) in self.layout.models_and(&mut unreadable)? {
            survey.add(&self.layout, &id, &revisions);
        }
        survey.damaged.extend(unreadable.into_iter().map(|Unreadable { path, error }| {
            DamagedModel { model: None, path, reason: error.to_string() }
        }));
        let aliases = match self.layout.look_for_aliases() {
            Ok(SmallFile::Damaged(reason)) => Some(reason),
            Ok(_) => None,
            Err(error) => Some(error.to_string()),
        };
        survey.damaged.extend(aliases.map(|reason| {
            let path = self.layout.aliases_path();
            DamagedModel { model: None, path, reason }
        }));
        Ok(survey)
    }

    /// What is damaged of the models that a name can mean.
    ///
    /// # Errors
    ///
    /// If the name is none, or several models could be meant.
    pub fn damaged(&self, name: &str) -> Result<Vec<DamagedModel>, Error> {
        let (ids, revision) = self.ids(&self.parse(name)?)?;
        let mut survey = Survey::default();
        for id in ids {
            let wanted = match &revision {
                Some(revision) => vec![self.folder_of(&id, revision)?],
                None => crate::layout::folders(&self.layout.model(&id))?,
            };
            survey.add(&self.layout, &id, &wanted);
        }
        Ok(survey.damaged)
    }

    /// The aliases that stand for nothing in the store, each with what it stands for.
    ///
    /// # Errors
    ///
    /// If the aliases have a later format, or cannot be read.
    pub fn dangling_aliases(&self) -> Result<Vec<(String, String)>, Error> {
        let aliases = self.layout.aliases()?.into_iter();
        Ok(aliases.filter(|(alias, _)| self.resolve(alias).is_err()).collect())
    }
}

impl Survey {
    /// Looks at revisions of a model, by their folders.
    fn add(&mut self, layout: &Layout, id: &ModelId, revisions: &[String]) {
        let before = self.models.len();
        for revision in revisions {
            let folder = layout.model(id).join(revision);
            let damaged = |reason: String| DamagedModel {
                model: Some(id.to_string()),
                path: folder.clone(),
                reason,
            };
            match StoredModel::look(id, folder.clone()) {
                Ok(StoredRevision::Whole(model)) => self.models.push(model),
                Ok(StoredRevision::Damaged(found)) => self.damaged.push(damaged(found.reason)),
                Ok(StoredRevision::Absent) => {}
                Err(error) => self.damaged.push(damaged(error.to_string())),
            }
        }
        self.models[before..].sort_by(|a, b| a.manifest.pulled.cmp(&b.manifest.pulled));
    }
}
