//! Discovery of models in a folder or in Hugging Face's cache. Both are only read.

use std::{
    fs,
    path::{Path, PathBuf},
};

use serde::Serialize;

use crate::{
    atomic_files::read_regular,
    file_selection::{INDEX, WEIGHT_FOLDERS, WEIGHTS, choose_stored, split_name},
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
    let names = names_in(snapshot);
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

/// Names of the files of a snapshot, and of those in its folders of weights.
fn names_in(snapshot: &Path) -> Vec<String> {
    let (mut files, folders) = entries(snapshot, &mut ENTRIES.clone());
    let has_weights = |folder: &&PathBuf| WEIGHT_FOLDERS.iter().any(|name| folder.ends_with(name));
    for folder in folders.iter().filter(has_weights) {
        files.extend(entries(folder, &mut ENTRIES.clone()).0);
    }
    let name =
        |file: &PathBuf| Some(file.strip_prefix(snapshot).ok()?.to_str()?.replace('\\', "/"));
    files.iter().filter_map(name).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A cache of Hugging Face's tools with one model of these files.
    fn cache(files: &[&str]) -> tempfile::TempDir {
        let cache = tempfile::tempdir().expect("a folder");
        let model = cache.path().join("models--o--n");
        for file in files {
            let path = model.join("snapshots/c0ffee").join(file);
            fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
            fs::write(path, file).expect("a file");
        }
        fs::create_dir_all(model.join("refs")).expect("a folder");
        fs::write(model.join("refs/main"), "c0ffee").expect("a file");
        cache
    }

    #[test]
    fn a_model_is_found_in_the_folder_of_its_format() {
        for (files, expected, bytes) in [
            (&["m-i2_s.gguf"][..], "m-i2_s.gguf", 11),
            (&["README.md", "gguf/m-f16.gguf", "gguf/m-i2_s.gguf"], "gguf/m-i2_s.gguf", 16),
            (
                &["config.json", "onnx/model_q2.onnx", "onnx/model_q2.onnx_data"],
                "onnx/model_q2.onnx",
                18 + 23,
            ),
        ] {
            let cache = cache(files);
            let found = in_hub_cache(cache.path(), "o", "n", None, None).expect("a model");
            let snapshot = cache.path().join("models--o--n/snapshots/c0ffee");
            assert_eq!((found.path, found.bytes), (snapshot.join(expected), bytes), "{files:?}");
            assert_eq!(discover_hub_cache(cache.path()).len(), 1, "{files:?}");
            let named = in_hub_cache(cache.path(), "o", "n", None, Some(expected));
            assert_eq!(named.expect("the file").path, snapshot.join(expected));
        }
        let elsewhere = cache(&["config.json", "other/m-i2_s.gguf"]);
        assert_eq!(in_hub_cache(elsewhere.path(), "o", "n", None, None), None);
    }
}
