//! The registry's folders.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
};

use serde::{Deserialize, Serialize};

use super::{
    choice::choose_stored,
    error::RegistryError,
    files::{disk_bytes, make_folder, write_atomically},
    manifest::{MAX_BYTES, Manifest},
    name::{ModelId, folder_name},
};

/// The version of the small files that is written, and the latest that is read.
const FORMAT: u32 = 1;

/// A model that is here whole.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct StoredModel {
    /// Its folders' names.
    pub id: ModelId,
    /// Its folder.
    pub folder: PathBuf,
    /// What is known of it.
    pub manifest: Manifest,
}

impl StoredModel {
    /// What to open: the model's folder, or a file in it. `file` is the one that is meant.
    ///
    /// # Errors
    ///
    /// If there is no such file, or several could be meant.
    pub fn path(&self, file: Option<&str>) -> Result<PathBuf, RegistryError> {
        let names: Vec<_> = self.manifest.files.iter().map(|file| file.name.clone()).collect();
        let (name, folder) = (self.id.to_string(), self.folder.display().to_string());
        let choice = choose_stored(&name, &folder, &names, file)?;
        Ok(choice.entry().map_or_else(|| self.folder.clone(), |file| self.folder.join(file)))
    }

    /// Whether all files are there with their sizes.
    fn is_whole(&self) -> bool {
        self.manifest.complete
            && self.manifest.files.iter().all(|file| {
                fs::metadata(self.folder.join(&file.name))
                    .is_ok_and(|found| found.len() == file.bytes)
            })
    }
}

/// What a revision of a model takes on the disk.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct DiskUse {
    /// The model.
    pub model: String,
    /// Its revision.
    pub revision: String,
    /// Whether it is there whole.
    pub complete: bool,
    /// Bytes on the disk, those of an unfinished pull included.
    pub bytes: u64,
}

/// Folders of a registry.
#[derive(Clone, Debug)]
pub(super) struct Store {
    pub(super) root: PathBuf,
}

/// Names of revisions, and the commits that they were at the last pull.
#[derive(Debug, Serialize, Deserialize)]
struct References {
    format: u32,
    revisions: BTreeMap<String, String>,
}

#[derive(Debug, Serialize, Deserialize)]
struct Aliases {
    format: u32,
    aliases: BTreeMap<String, String>,
}

impl Store {
    /// The folder of a model's revisions.
    pub(super) fn model(&self, id: &ModelId) -> PathBuf {
        self.root.join("models").join(&id.host).join(&id.owner).join(&id.name)
    }

    pub(super) fn revision(&self, id: &ModelId, revision: &str) -> PathBuf {
        self.model(id).join(folder_name(revision))
    }

    pub(super) fn lock(&self, id: &ModelId) -> PathBuf {
        self.root.join("locks").join(&id.host).join(&id.owner).join(format!("{}.lock", id.name))
    }

    pub(super) fn alias_lock(&self) -> PathBuf {
        self.root.join("locks").join("aliases.lock")
    }

    /// All models, whole or not, each with the names of its revisions' folders.
    pub(super) fn models(&self) -> Result<Vec<(ModelId, Vec<String>)>, RegistryError> {
        let mut models = vec![];
        let root = self.root.join("models");
        for host in folders(&root)? {
            for owner in folders(&root.join(&host))? {
                for name in folders(&root.join(&host).join(&owner))? {
                    let id = ModelId { host: host.clone(), owner: owner.clone(), name };
                    let revisions = folders(&self.model(&id))?;
                    models.push((id, revisions));
                }
            }
        }
        Ok(models)
    }

    /// A revision of a model, if it is there whole.
    pub(super) fn whole(
        &self,
        id: &ModelId,
        revision: &str,
    ) -> Result<Option<StoredModel>, RegistryError> {
        let folder = self.revision(id, revision);
        let manifest = Manifest::read(&folder)?;
        let model = manifest.map(|manifest| StoredModel { id: id.clone(), folder, manifest });
        Ok(model.filter(StoredModel::is_whole))
    }

    /// The revisions of a model that are there whole, the one pulled last at the end.
    pub(super) fn revisions(&self, id: &ModelId) -> Result<Vec<StoredModel>, RegistryError> {
        let mut found = vec![];
        for revision in folders(&self.model(id))? {
            found.extend(self.whole(id, &revision)?);
        }
        found.sort_by(|a, b| a.manifest.pulled.cmp(&b.manifest.pulled));
        Ok(found)
    }

    /// The commit that a name of a revision was at the last pull.
    pub(super) fn reference(
        &self,
        id: &ModelId,
        name: &str,
    ) -> Result<Option<String>, RegistryError> {
        let references: Option<References> = read_small(&self.model(id).join("refs.json"))?;
        Ok(references.and_then(|references| references.revisions.get(name).cloned()))
    }

    pub(super) fn refer(
        &self,
        id: &ModelId,
        name: &str,
        commit: &str,
    ) -> Result<(), RegistryError> {
        let path = self.model(id).join("refs.json");
        let references: Option<References> = read_small(&path)?;
        let mut revisions = references.map(|references| references.revisions).unwrap_or_default();
        if revisions.insert(name.into(), commit.into()).as_deref() == Some(commit) {
            return Ok(());
        }
        write_small(&path, &References { format: FORMAT, revisions })
    }

    pub(super) fn aliases(&self) -> Result<BTreeMap<String, String>, RegistryError> {
        let aliases: Option<Aliases> = read_small(&self.root.join("aliases.json"))?;
        Ok(aliases.map(|aliases| aliases.aliases).unwrap_or_default())
    }

    pub(super) fn write_aliases(
        &self,
        aliases: BTreeMap<String, String>,
    ) -> Result<(), RegistryError> {
        make_folder(&self.root)?;
        write_small(&self.root.join("aliases.json"), &Aliases { format: FORMAT, aliases })
    }

    /// What each revision takes, whole or not.
    pub(super) fn disk_use(&self) -> Result<Vec<DiskUse>, RegistryError> {
        let mut uses = vec![];
        for (id, revisions) in self.models()? {
            for folder in revisions {
                let path = self.model(&id).join(&folder);
                let manifest = Manifest::read(&path)?;
                let complete = self.whole(&id, &folder)?.is_some();
                let revision = manifest.map_or(folder, |manifest| manifest.revision);
                uses.push(DiskUse {
                    model: id.to_string(),
                    revision,
                    complete,
                    bytes: bytes_in(&path),
                });
            }
        }
        Ok(uses)
    }
}

/// Names of the folders in a folder, sorted; none where it is not there.
pub(super) fn folders(path: &Path) -> Result<Vec<String>, RegistryError> {
    let entries = match fs::read_dir(path) {
        Ok(entries) => entries,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(vec![]),
        Err(error) => return Err(RegistryError::io("list", path, 0, error)),
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

fn bytes_in(folder: &Path) -> u64 {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let sizes = entries.filter_map(|entry| {
        let metadata = fs::symlink_metadata(entry.path()).ok()?;
        Some(if metadata.is_dir() { bytes_in(&entry.path()) } else { disk_bytes(&metadata) })
    });
    sizes.fold(0, u64::saturating_add)
}

/// A small JSON file with its version; `None` where there is none.
fn read_small<T: for<'de> Deserialize<'de>>(path: &Path) -> Result<Option<T>, RegistryError> {
    #[derive(Deserialize)]
    struct Version {
        format: u32,
    }
    let bytes = match fs::metadata(path) {
        Ok(metadata) if metadata.len() > MAX_BYTES => Ok(vec![]),
        Ok(_) => fs::read(path),
        Err(error) => Err(error),
    };
    let bytes = match bytes {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(RegistryError::io("read", path, 0, error)),
    };
    let bad = |reason: String| RegistryError::BadManifest { path: path.to_owned(), reason };
    let Version { format } =
        serde_json::from_slice(&bytes).map_err(|error| bad(error.to_string()))?;
    if format != FORMAT {
        return Err(bad(format!("it has format {format}, expected {FORMAT}")));
    }
    serde_json::from_slice(&bytes).map(Some).map_err(|error| bad(error.to_string()))
}

fn write_small(path: &Path, value: &impl Serialize) -> Result<(), RegistryError> {
    let text = serde_json::to_vec_pretty(value).map_err(|error| RegistryError::BadManifest {
        path: path.to_owned(),
        reason: error.to_string(),
    })?;
    write_atomically(path, &text)
}
