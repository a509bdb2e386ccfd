//! Folder layout of the store.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
};

use serde::{Deserialize, Serialize};

use crate::{
    atomic_files::{folder_bytes, make_folder, remove_any, with_end},
    error::Error,
    manifest::{MANIFEST, Manifest},
    model_name::{ModelId, folder_name},
    small_files::{FORMAT, SmallFile, parse_format, read_small, write_small},
    stored_model::{DiskUsage, StoredModel, StoredRevision},
};

/// Folders of a store.
#[derive(Clone, Debug)]
pub(crate) struct Layout {
    pub(crate) root: PathBuf,
}

/// Names of revisions, and the commits that they were at the last pull.
#[derive(Debug, Serialize, Deserialize)]
struct References {
    format: u32,
    revisions: BTreeMap<String, String>,
}

/// A folder of the store that cannot be read.
#[derive(Debug)]
pub(crate) struct Unreadable {
    pub(crate) path: PathBuf,
    pub(crate) error: Error,
}

#[derive(Debug, Serialize, Deserialize)]
struct Aliases {
    format: u32,
    aliases: BTreeMap<String, String>,
}

impl Layout {
    /// The folder of a model's revisions.
    pub(crate) fn model(&self, id: &ModelId) -> PathBuf {
        self.root.join("models").join(&id.host).join(&id.owner).join(&id.name)
    }

    pub(crate) fn revision(&self, id: &ModelId, revision: &str) -> PathBuf {
        self.model(id).join(folder_name(revision))
    }

    pub(crate) fn lock(&self, id: &ModelId) -> PathBuf {
        self.root.join("locks").join(&id.host).join(&id.owner).join(format!("{}.lock", id.name))
    }

    pub(crate) fn alias_lock(&self) -> PathBuf {
        self.root.join("locks").join("aliases.lock")
    }

    /// All models, whole or not, each with the names of its revisions' folders. Folders that cannot
    /// be read are passed over.
    pub(crate) fn models(&self) -> Result<Vec<(ModelId, Vec<String>)>, Error> {
        self.models_and(&mut vec![])
    }

    /// The same, with the folders that cannot be read.
    pub(crate) fn models_and(
        &self,
        unreadable: &mut Vec<Unreadable>,
    ) -> Result<Vec<(ModelId, Vec<String>)>, Error> {
        let mut models = vec![];
        let root = self.root.join("models");
        let mut within = |path: PathBuf| {
            folders(&path).unwrap_or_else(|error| {
                unreadable.push(Unreadable { path, error });
                vec![]
            })
        };
        for host in folders(&root)? {
            for owner in within(root.join(&host)) {
                for name in within(root.join(&host).join(&owner)) {
                    let id = ModelId { host: host.clone(), owner: owner.clone(), name };
                    let revisions = within(self.model(&id));
                    models.push((id, revisions));
                }
            }
        }
        Ok(models)
    }

    /// What there is of a revision of a model.
    pub(crate) fn look(&self, id: &ModelId, revision: &str) -> Result<StoredRevision, Error> {
        StoredModel::look(id, self.revision(id, revision))
    }

    /// The revisions of a model, whole or damaged, the one pulled last at the end.
    pub(crate) fn revisions(&self, id: &ModelId) -> Result<Vec<StoredRevision>, Error> {
        let mut found = vec![];
        for revision in folders(&self.model(id))? {
            match self.look(id, &revision)? {
                StoredRevision::Absent => {}
                revision => found.push(revision),
            }
        }
        found.sort_by(|a, b| a.pulled().cmp(&b.pulled()));
        Ok(found)
    }

    /// The commit that a name of a revision was at the last pull.
    pub(crate) fn reference(&self, id: &ModelId, name: &str) -> Result<Option<String>, Error> {
        let references = read_small(&self.model(id).join("refs.json"), parse_format)?;
        let references: Option<References> = references.found();
        Ok(references.and_then(|references| references.revisions.get(name).cloned()))
    }

    /// The folder's name of a revision that may be named by a branch, where that can be read.
    pub(crate) fn folder_of(&self, id: &ModelId, revision: &str) -> String {
        let commit = self.reference(id, revision).unwrap_or_default();
        folder_name(commit.as_deref().unwrap_or(revision))
    }

    pub(crate) fn refer(&self, id: &ModelId, name: &str, commit: &str) -> Result<(), Error> {
        let path = self.model(id).join("refs.json");
        let references: Option<References> = read_small(&path, parse_format)?.found();
        let mut revisions = references.map(|references| references.revisions).unwrap_or_default();
        if revisions.insert(name.into(), commit.into()).as_deref() == Some(commit) {
            return Ok(());
        }
        write_small(&path, &References { format: FORMAT, revisions })
    }

    pub(crate) fn aliases(&self) -> Result<BTreeMap<String, String>, Error> {
        Ok(self.look_for_aliases()?.found().unwrap_or_default())
    }

    /// What there is as the file of aliases.
    pub(crate) fn look_for_aliases(&self) -> Result<SmallFile<BTreeMap<String, String>>, Error> {
        let parse = |bytes: &[u8]| parse_format(bytes).map(|Aliases { aliases, .. }| aliases);
        read_small(&self.aliases_path(), parse)
    }

    pub(crate) fn aliases_path(&self) -> PathBuf {
        self.root.join("aliases.json")
    }

    /// Writes the aliases. A damaged file is kept beside: only its user knows what it said.
    pub(crate) fn write_aliases(&self, aliases: BTreeMap<String, String>) -> Result<(), Error> {
        make_folder(&self.root)?;
        let path = self.aliases_path();
        if let SmallFile::Damaged(_) = self.look_for_aliases()? {
            let kept = with_end(&path, ".damaged");
            remove_any(&kept)?;
            let renamed = fs::rename(&path, &kept);
            renamed.map_err(|error| Error::io("rename", &path, 0, error))?;
        }
        write_small(&path, &Aliases { format: FORMAT, aliases })
    }

    /// What each revision takes, whole or not.
    pub(crate) fn disk_usage(&self) -> Result<Vec<DiskUsage>, Error> {
        let mut uses = vec![];
        for (id, revisions) in self.models()? {
            for folder in revisions {
                let path = self.model(&id).join(&folder);
                // One that cannot be read takes its room all the same.
                let manifest = Manifest::read(&path).unwrap_or_default();
                let complete = self.look(&id, &folder).is_ok_and(|found| found.whole().is_some());
                let revision = manifest.map_or(folder, |manifest| manifest.revision);
                let (model, bytes) = (id.to_string(), folder_bytes(&path));
                uses.push(DiskUsage { model, revision, complete, bytes });
            }
        }
        Ok(uses)
    }
}

/// Removes a revision: first what makes it visible.
pub(crate) fn remove_revision(folder: &Path) -> Result<(), Error> {
    remove_any(&folder.join(MANIFEST))?;
    fs::remove_dir_all(folder).map_err(|error| Error::io("remove", folder, 0, error))
}

/// Names of the folders in a folder, sorted; none where it is not there.
pub(crate) fn folders(path: &Path) -> Result<Vec<String>, Error> {
    let entries = match fs::read_dir(path) {
        Ok(entries) => entries,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(vec![]),
        Err(error) => return Err(Error::io("list", path, 0, error)),
    };
    let is_folder = |entry: &fs::DirEntry| entry.file_type().is_ok_and(|kind| kind.is_dir());
    let mut names: Vec<_> = entries
        .flatten()
        .filter(is_folder)
        .filter_map(|entry| entry.file_name().into_string().ok())
        .collect();
    names.sort();
    Ok(names)
}
