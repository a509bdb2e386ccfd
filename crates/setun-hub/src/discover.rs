//! Discovery of models in a folder or in Hugging Face's cache. Both are only read.

use std::{
    fs,
    path::{Path, PathBuf},
};

use serde::Serialize;

use crate::{
    atomic_files::read_regular,
    file_selection::{INDEX, WEIGHTS, choose_stored, split_name},
    model_name::is_lone_name,
};

/// How deep a tree of folders is looked into.
const DEPTH: u32 = 8;

/// Most entries that are looked at.
const ENTRIES: usize = 100_000;

/// Most bytes of a name of a commit that are read.
const MAX_REFERENCE: u64 = 1 << 10;

/// A model that was found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct DiscoveredModel {
    /// A display name: its path below the folder, or `owner/name`.
    pub name: String,
    /// What to open.
    pub path: PathBuf,
    /// The commit, in Hugging Face's cache.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub revision: Option<String>,
    /// Bytes of its weights.
    pub bytes: u64,
}

/// Models in a folder and those below it: folders in Hugging Face's layout, and lone files. What
/// cannot be read is passed over.
#[must_use]
pub fn discover(folder: &Path) -> Vec<DiscoveredModel> {
    let (mut found, mut left) = (vec![], ENTRIES);
    look(folder, folder, DEPTH, &mut left, &mut found);
    found
}

fn look(
    root: &Path,
    folder: &Path,
    depth: u32,
    left: &mut usize,
    found: &mut Vec<DiscoveredModel>,
) {
    let (files, folders) = entries(folder, left);
    let name = |path: &Path| path.strip_prefix(root).unwrap_or(path).to_string_lossy().into_owned();
    let is = |wanted: &str| files.iter().any(|file| file.ends_with(wanted));
    let set = is("config.json") && (is(WEIGHTS) || is(INDEX));
    if set {
        let weights = files.iter().filter(|file| is_weights(file));
        let bytes = weights.map(|file| size(file)).sum();
        let mut name = name(folder);
        if name.is_empty() {
            name = folder.file_name().unwrap_or_default().to_string_lossy().into_owned();
        }
        found.push(DiscoveredModel { name, path: folder.to_owned(), revision: None, bytes });
    }
    for file in &files {
        let lone = file.file_name().is_some_and(|name| is_lone_name(&name.to_string_lossy()));
        if lone && !(set && is_weights(file)) && !is_later_part(file) {
            let (name, path) = (name(file), file.clone());
            found.push(DiscoveredModel { name, path, revision: None, bytes: size(file) });
        }
    }
    if depth > 0 {
        for folder in folders {
            look(root, &folder, depth - 1, left, found);
        }
    }
}

/// Files, and folders that are no links, each sorted. Hidden ones are left out.
fn entries(folder: &Path, left: &mut usize) -> (Vec<PathBuf>, Vec<PathBuf>) {
    let (mut files, mut folders) = (vec![], vec![]);
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        if *left == 0 {
            break;
        }
        *left -= 1;
        let path = entry.path();
        if entry.file_name().to_string_lossy().starts_with('.') {
            continue;
        }
        match entry.file_type() {
            Ok(kind) if kind.is_dir() => folders.push(path),
            // A link to a file is one; a link to a folder could lead in a circle.
            Ok(_) if path.is_file() => files.push(path),
            _ => {}
        }
    }
    files.sort();
    folders.sort();
    (files, folders)
}

fn is_weights(file: &Path) -> bool {
    file.extension().is_some_and(|end| end == "safetensors")
}

/// `-00002-of-00003` and later: the first part stands for all.
fn is_later_part(file: &Path) -> bool {
    let name = file.file_name().unwrap_or_default().to_string_lossy();
    split_name(&name).is_some_and(|split| split.part > 1)
}

fn size(file: &Path) -> u64 {
    fs::metadata(file).map_or(0, |metadata| metadata.len())
}

/// Models in the cache of Hugging Face's tools: `models--OWNER--NAME/snapshots/COMMIT`.
pub(crate) fn discover_hub_cache(cache: &Path) -> Vec<DiscoveredModel> {
    let (_, folders) = entries(cache, &mut ENTRIES.clone());
    let mut found = vec![];
    for folder in folders {
        let name = folder.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let Some((owner, name)) =
            name.strip_prefix("models--").and_then(|name| name.split_once("--"))
        else {
            continue;
        };
        let (_, snapshots) = entries(&folder.join("snapshots"), &mut ENTRIES.clone());
        found.extend(
            snapshots.iter().filter_map(|snapshot| of_snapshot(owner, name, snapshot, None)),
        );
    }
    found
}

/// A model of the cache by its name; `revision` is `main` unless named.
pub(crate) fn in_hub_cache(
    cache: &Path,
    owner: &str,
    name: &str,
    revision: Option<&str>,
    file: Option<&str>,
) -> Option<DiscoveredModel> {
    let folder = cache.join(format!("models--{owner}--{name}"));
    let revision = revision.unwrap_or("main");
    if revision.split('/').any(|part| part.is_empty() || part == "..") {
        return None;
    }
    let commit = read_regular(&folder.join("refs").join(revision), MAX_REFERENCE).ok();
    let commit = commit.and_then(|commit| String::from_utf8(commit).ok());
    let commit = commit.as_deref().map_or(revision, str::trim);
    if commit.contains(['/', '\\']) || commit.starts_with('.') {
        return None;
    }
    of_snapshot(owner, name, &folder.join("snapshots").join(commit), file)
}

fn of_snapshot(
    owner: &str,
    name: &str,
    snapshot: &Path,
    file: Option<&str>,
) -> Option<DiscoveredModel> {
    let (files, _) = entries(snapshot, &mut ENTRIES.clone());
    let names: Vec<_> =
        files.iter().filter_map(|file| Some(file.file_name()?.to_str()?.to_owned())).collect();
    let model = format!("{owner}/{name}");
    let choice = choose_stored(&model, &snapshot.display().to_string(), &names, file).ok()?;
    // One whose weights are not all there is of no use.
    let bytes = choice.weights.iter().map(|name| size(&snapshot.join(name))).sum();
    Some(DiscoveredModel {
        name: model,
        path: choice.entry().map_or_else(|| snapshot.to_owned(), |entry| snapshot.join(entry)),
        revision: snapshot.file_name().map(|name| name.to_string_lossy().into_owned()),
        bytes,
    })
}
